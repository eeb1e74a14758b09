#include <streambp/laws/guarded_array.hpp>

#include <doctest/doctest.h>

#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>

#include "../unreachable_device.hpp"

using namespace streambp;

TEST_CASE("an array of a device is what its mirror was") {
  using far = unreachable::device<double>;
  far on(1);
  laws::guarded_array<far> own(std::vector<double>{1, 2, 3});
  own.push(on);
  own.host()[1] = 7;
  own.pull(on);
  CHECK(own.pulled().holds(std::vector<double>{1, 2, 3}));
  shift(on, 0.5, view<double>{own.span().data(), 1, 3});
  CHECK(own.pulled().holds(std::vector<double>{1, 2, 3}));
  own.pull(on);
  CHECK(own.pulled().holds(std::vector<double>{1.5, 2.5, 3.5}));
  fill(on, 0., view<double>{own.span().data(), 1, 4});  // one too many
  own.pull(on);
  CHECK(!own.pulled().margins_untouched());
}

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
