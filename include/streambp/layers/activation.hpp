// y = f(x), entry by entry.
#pragma once

#include "../primitives/activation_kind.hpp"

namespace streambp {

struct activate {
  static constexpr const char* name = "activate";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  activation kind;

  void forward(auto& at, auto x, auto y) const {
    if (at.wants_output) activation_forward(at.on, kind, x, y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    activation_backward(at.on, kind, x, dy, dx);
  }
};

inline activate gelu() { return {activation::gelu}; }            // x Φ(x)
inline activate gelu_tanh() { return {activation::gelu_tanh}; }  // its tanh approximation
inline activate silu() { return {activation::silu}; }            // x σ(x)
inline activate relu() { return {activation::relu}; }

}  // namespace streambp
