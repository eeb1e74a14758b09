#include <streambp/laws/hold.hpp>

#include <doctest/doctest.h>

#include <streambp/laws/count_allocations.hpp>

#include "../unreachable_device.hpp"

using namespace streambp;

TEST_CASE("laws on memory that the host cannot touch") {
  const auto layer = residual(rms_norm(4) | causal_attention({.features = 4, .heads = 2}) |
                              gated_recurrence(4, 3));
  const laws::report r = laws::hold<unreachable::device>(layer, laws::rows(37, 4));
  CHECK_MESSAGE(r, r);
  CHECK(sentence(r).find("the host cannot watch rows") != std::string::npos);
}

TEST_CASE("laws of losses on memory that the host cannot touch") {
  const laws::report scored =
      laws::hold_loss<unreachable::device>(cross_entropy{.z_loss = 0.1}, laws::rows(37, 4));
  CHECK_MESSAGE(scored, scored);
}

TEST_CASE("laws of several heads, each with a loss of its own") {
  const laws::report r = laws::hold_loss(
      losses(cross_entropy{.label_smoothing = 0.1}, cross_entropy{.average = over::samples}),
      laws::rows(37, 4));
  CHECK_MESSAGE(r, r);
}
