// The engine on the default device: its scalar comes from the plan.
#pragma once

#include "../core/warning.hpp"
#include "../default_device.hpp"
#include "engine.hpp"

namespace streambp {

namespace detail {

// Once a program. Primitives live on being inlined.
inline void warn_of_a_slow_build() {
#ifndef __OPTIMIZE__
  [[maybe_unused]] static const bool said =
      (warn("this program is compiled without optimisation, which makes a step some hundred times "
            "slower: add -O3 -march=native (CMake: -DCMAKE_BUILD_TYPE=Release)"),
       true);
#endif
}

}  // namespace detail

template <class Scalar, class Model, class Loss>
class engine : public basic_engine<default_device<Scalar>, Model, Loss> {
 public:
  engine(typed_plan<Scalar> p, const Model& model, Loss loss)
      : basic_engine<default_device<Scalar>, Model, Loss>(std::move(p), model, std::move(loss)) {
    detail::warn_of_a_slow_build();
  }
};

}  // namespace streambp
