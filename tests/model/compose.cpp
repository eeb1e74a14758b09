#include <streambp/model/compose.hpp>

#include "../layers/reference.hpp"

namespace streambp {
namespace {

TEST_CASE("a decoder block keeps the laws") {
  const auto block =
      residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2, .rotary = 1e4})) |
      named("mlp", residual(rms_norm(8) | named("inner", swiglu(8, 12))));
  CHECK(laws::hold(named("block", block), laws::rows(37, 8)));
}

TEST_CASE("repeated blocks keep the laws, and so do residuals inside a residual") {
  const auto inner = residual(rms_norm(8)) | gated_recurrence(8, 5);
  CHECK(laws::hold(repeat(3, residual(inner | dropout(0.2))), laws::rows(37, 8)));
}

TEST_CASE("compositions name what does not fit") {
  CHECK(words_of([] { repeat(0, gelu()); }) == "repeat: 0 blocks; a model has at least one");
  CHECK(words_of([] { laws::hold(residual(linear(8, 6)), laws::rows(37, 8)); }) ==
        "residual: its input has 8 features, its branch gives 6");
}

}  // namespace
}  // namespace streambp
