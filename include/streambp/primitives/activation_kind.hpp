// The scalar functions that primitives know.
#pragma once

#include "../core/language.hpp"

namespace streambp {

// silu: x σ(x). gelu: x Φ(x), gelu_tanh its tanh approximation.
enum class activation : unsigned char { silu, gelu, gelu_tanh, relu, sigmoid, tanh };

}  // namespace streambp
