// The engine on the default device: its scalar comes from the plan.
#pragma once

#include "../default_device.hpp"
#include "engine.hpp"

namespace streambp {

template <class Scalar, class Model, class Loss>
class engine : public basic_engine<default_device<Scalar>, Model, Loss> {
 public:
  engine(typed_plan<Scalar> p, const Model& model, Loss loss)
      : basic_engine<default_device<Scalar>, Model, Loss>(std::move(p), model, std::move(loss)) {}
};

}  // namespace streambp
