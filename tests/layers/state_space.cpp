#include <streambp/layers/state_space.hpp>

#include "families.hpp"

namespace streambp {
namespace {

const state_space_options small{.features = 8, .inner = 12, .head_width = 3, .states = 5};

state_space_options with(void (*change)(state_space_options&)) {
  state_space_options o = small;
  change(o);
  return o;
}

TEST_CASE("a state space layer keeps the laws") {
  CHECK(laws::hold(state_space(small), laws::rows(37, 8)));
  CHECK(laws::hold(state_space(with([](auto& o) { o.groups = 4; })), laws::rows(37, 8)));
  CHECK(
      laws::hold(state_space(with([](auto& o) { o.groups = 2, o.taps = 1; })), laws::rows(97, 8)));
}

TEST_CASE("a state space layer goes on from a shared prompt") {
  CHECK(hold_in_families(state_space(small), 8));
}

TEST_CASE("a state space layer is its formula's") {
  check_against(
      "state_space",
      state_space({.features = 16, .inner = 24, .head_width = 6, .states = 5, .groups = 2}));
}

TEST_CASE("a state space layer names what does not fit") {
  const auto words = [](void (*change)(state_space_options&)) {
    return words_of([&] { state_space{with(change)}; });
  };
  CHECK(words([](auto& o) { o.head_width = 5; }) ==
        "state_space: an inner width of 12 does not divide into heads of 5");
  CHECK(words([](auto& o) { o.groups = 3; }) == "state_space: 4 heads do not divide into 3 groups");
  CHECK(words([](auto& o) { o.states = 0; }) == "state_space: states is 0, it must be positive");
  CHECK(words([](auto& o) { o.taps = 0; }) == "state_space: taps is 0, it must be positive");
  CHECK(words_of([] { laws::hold(state_space(small), laws::rows(37, 6)); }) ==
        "state_space: x has 6 features, the layer takes 8");
}

}  // namespace
}  // namespace streambp
