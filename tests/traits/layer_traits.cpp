#include <streambp/traits/layer_traits.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace streambp;

namespace {

struct w_tag {};
struct h_tag {};
struct k_tag {};

// Says nothing about itself.
struct silent {
  void forward(auto& at, auto, auto) const { at.push_back("forward"); }
  void backward(auto& at, auto, auto, auto, auto) const { at.push_back("backward"); }
};

// Says everything.
struct outspoken {
  static constexpr const char* name = "outspoken";
  static constexpr reach sees = all;
  static constexpr bool takes_tokens = true, backward_reads_input = false,
                        backward_reads_output = false, counts_flops = true;
  position features(position in) const { return 2 * in; }
  constexpr auto slots() const {
    return std::tuple{parameter(w_tag{}, 2, 3, zeros), memory(k_tag{}, 5)};
  }
  void remember(auto& at, auto) const { at.push_back("remember"); }
  void forward(auto& at, auto, auto) const { at.push_back("forward"); }
  void backward(auto& at, auto, auto, auto, auto) const { at.push_back("backward"); }
  void release(auto& at, auto, auto) const { at.push_back("release"); }
};

// Its slots depend on the width it is given; a carry sees the past without saying so.
struct adaptive {
  constexpr auto slots(position in) const { return std::tuple{carry(h_tag{}, 1, 3 * in)}; }
};

// A type that cannot be edited.
struct foreign {
  int factor;
  int times(int x) const { return factor * x; }
};

}  // namespace

namespace streambp {

template <>
struct layer_traits<foreign> : layer_traits<silent> {
  static constexpr const char* name() { return "foreign"; }
  static position features(const foreign& layer, position in) { return layer.times(int(in)); }
};

}  // namespace streambp

static_assert(layer_traits<silent>::split == dependency{});
static_assert(std::is_same_v<layer_traits<silent>::slot_types, std::tuple<>>);
static_assert(!layer_traits<silent>::takes_tokens && !layer_traits<silent>::counts_flops);
static_assert(layer_traits<silent>::backward_reads_input &&
              layer_traits<silent>::backward_reads_output);

static_assert(layer_traits<outspoken>::split == dependency{all, false, true});
static_assert(layer_traits<outspoken>::count::of(slot_kind::parameter) == 1);
static_assert(layer_traits<outspoken>::takes_tokens && layer_traits<outspoken>::counts_flops);
static_assert(!layer_traits<outspoken>::backward_reads_input &&
              !layer_traits<outspoken>::backward_reads_output);

static_assert(layer_traits<adaptive>::split == dependency{past, true, false});
static_assert(std::get<0>(layer_traits<adaptive>::slots(adaptive{}, 4)).cols == 12);

TEST_CASE("layer_traits: members are adopted, what is absent has its default") {
  CHECK(layer_traits<silent>::features({}, 7) == 7);
  CHECK(std::string(layer_traits<silent>::name()) == "layer");
  CHECK(layer_traits<outspoken>::features({}, 7) == 14);
  CHECK(std::string(layer_traits<outspoken>::name()) == "outspoken");
  CHECK(std::get<1>(layer_traits<outspoken>::slots({}, 7)).cols == 5);

  std::vector<std::string> called;
  layer_traits<outspoken>::remember({}, called, 0);
  layer_traits<outspoken>::forward({}, called, 0, 0);
  layer_traits<outspoken>::backward({}, called, 0, 0, 0, 0);
  layer_traits<outspoken>::release({}, called, 0, 0);
  CHECK(called == std::vector<std::string>{"remember", "forward", "backward", "release"});
}

TEST_CASE("layer_traits: a specialization speaks for a type that cannot be edited") {
  CHECK(layer_traits<foreign>::features(foreign{3}, 5) == 15);
  CHECK(std::string(layer_traits<foreign>::name()) == "foreign");
}
