// Parameters used twice, not trained, and layers that draw random numbers: every plan, the same
// bits.
#include <streambp/engine/run_section.hpp>

#include "trial.hpp"

using namespace streambp;

namespace {

const packed samples = packed_lengths({1, 40, 0, 23, 61});
const geometry small{8, 16};

auto attend() {
  return residual(rms_norm(12) | causal_attention({.features = 12, .heads = 2, .rotary = 1e3}));
}

// The table is used at both ends and once between them; a frozen part stands in the middle.
auto model() {
  return embedding(12, 12) | attend() | residual(tied_linear{12, 12} | dropout(0.25)) |
         frozen(residual(layer_norm(12) | gated_recurrence(12, 6))) |
         residual(rms_norm(12) | dropout(0.5) | swiglu(12, 16) | dropout(0.1)) | rms_norm(12) |
         tied_linear{12, 12};
}

}  // namespace

TEST_CASE("tied table, dropout, frozen recurrence: plans, in fp64") {
  every_plan_has_the_same_bits(
      trial_of<double>(model(), cross_entropy{}, samples, {.grains = small}),
      {{1, 40, 125, 1000}, {1, 32, 1000}}, 251);
}

TEST_CASE("tied table, dropout, frozen recurrence: plans, in fp32") {
  every_plan_has_the_same_bits(
      trial_of<float>(model(), cross_entropy{}, samples, {.grains = small}),
      {{1, 40, 125, 1000}, {1, 32, 1000}}, 299);
}
