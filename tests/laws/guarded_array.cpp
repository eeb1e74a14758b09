#include <streambp/laws/guarded_array.hpp>

#include <doctest/doctest.h>

#include <streambp/default_bodies.hpp>
#include <vector>

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
