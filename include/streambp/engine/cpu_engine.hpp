// The engine on the CPU: its scalar comes from the plan.
#pragma once

#include "../cpu/device.hpp"
#include "engine.hpp"

namespace streambp {

template <class Scalar, class Model, class Loss>
class engine : public basic_engine<cpu::device<Scalar>, Model, Loss> {
 public:
  engine(typed_plan<Scalar> p, const Model& model, Loss loss)
      : basic_engine<cpu::device<Scalar>, Model, Loss>(std::move(p), model, std::move(loss)) {}
};

}  // namespace streambp
