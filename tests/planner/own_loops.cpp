// A layer that says counts_flops = true and loops itself is refused when it is planned for,
// whatever it looks at; one that asks whether there are data, or that says nothing, is not.
#include <streambp/planner/own_loops.hpp>

#include <doctest/doctest.h>

#include <string>

#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

// What the layer's own loop looks at, although it says that it has none.
enum class look { nothing, x, w, y, dy, dx, dw, keys, dkeys, size };

struct w_tag {
  static constexpr const char* name = "w";
};
struct k_tag {
  static constexpr const char* name = "k";
};

// y = x; a weight and a memory that nobody uses.
template <look At, bool Counts = true>
struct peeking {
  static constexpr const char* name = "peeking";
  static constexpr bool counts_flops = Counts;
  static constexpr auto sees = past;

  auto slots(position in) const {
    return std::tuple{parameter(w_tag{}, 70'000, in, zeros), memory(k_tag{}, in)};
  }
  void remember(auto& at, auto x) const {
    copy(at.on, x, at.own(at[k_tag{}]));
    if (At == look::keys) at.own(at[k_tag{}])(0, 0) += 1;
  }
  void forward(auto& at, auto x, auto y) const {
    copy(at.on, x, y);
    if (At == look::x && x(0, 0) > 7) throw shape_error("seven");
    if (At == look::w && at[w_tag{}](0, 0) > 7) throw shape_error("seven");
    if (At == look::y) y(0, 0) = 0;
    if (At == look::size && x.rows > 0 && x.data + x.rows == nullptr) throw shape_error("nowhere");
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    add(at.on, dy, dx);
    if (At == look::dy && dy(0, 0) > 7) throw shape_error("seven");
    if (At == look::dx) dx(0, 0) += 1;
    if (At == look::dw && at.trains(w_tag{})) at.d(w_tag{})(0, 0) += 1;
  }
  void release(auto& at, auto, auto dx) const {
    add(at.on, at.own(at.d(k_tag{})), dx);
    if (At == look::dkeys) at.own(at.d(k_tag{}))(0, 0) += 1;
  }
};

// Features of a token by a loop of its own.
struct looked_up {
  static constexpr const char* name = "looked_up";
  static constexpr bool counts_flops = true, takes_tokens = true;
  position features(position) const { return 8; }
  void forward(auto& at, auto tokens, auto y) const {
    fill(at.on, typename std::decay_t<decltype(at)>::scalar(tokens.data()[0]), y);
  }
  void backward(auto&, auto, auto, auto, auto) const {}
};

// y = x / 2, by a loop of its own.
struct cooled {
  static constexpr const char* name = "cooled";
  static constexpr bool counts_flops = true;
  void forward(auto&, auto x, auto y) const {
    for (position i = 0; i < x.rows; ++i)
      for (position j = 0; j < x.cols; ++j) y(i, j) = x(i, j) / 2;
  }
  void backward(auto&, auto, auto, auto dy, auto dx) const {
    for (position i = 0; i < dy.rows; ++i)
      for (position j = 0; j < dy.cols; ++j) dx(i, j) += dy(i, j) / 2;
  }
};

std::string refusal(const auto& model, plan_options options = {}) {
  options.grains = grains;
  try {
    planner_of<std::decay_t<decltype(model)>>(model, samples, options).plain();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

const std::string why =
    " says counts_flops = true, but its own loop looks at rows or parameters, and FLOPs are "
    "counted "
    "without data: loop by for_rows, or leave counts_flops out";

template <look At>
std::string refusal_of() {
  return refusal(linear(8, 6) | residual(peeking<At>{}) | linear(6, 5), {.features = 8});
}

}  // namespace

TEST_CASE("a layer that counts FLOPs and looks at its rows by itself is refused") {
  for (const std::string& said :
       {refusal_of<look::x>(), refusal_of<look::w>(), refusal_of<look::y>(), refusal_of<look::dy>(),
        refusal_of<look::dx>(), refusal_of<look::dw>(), refusal_of<look::keys>(),
        refusal_of<look::dkeys>()})
    CHECK(said == "plan: peeking" + why);
}
TEST_CASE("so is one in the head or of tokens") {
  CHECK(refusal(looked_up{} | attend | linear(8, 5)) == "plan: looked_up" + why);
  CHECK(refusal(attend | linear(8, 5) | cooled{}, {.features = 8}) ==
        "plan: one of linear, cooled" + why);
}
TEST_CASE("one that says nothing, or looks at sizes and addresses alone, is planned for") {
  CHECK(refusal(residual(peeking<look::nothing>{}) | linear(8, 5), {.features = 8}) == "");
  CHECK(refusal(residual(peeking<look::size>{}) | linear(8, 5), {.features = 8}) == "");
  CHECK(refusal(residual(peeking<look::dx, false>{}) | linear(8, 5), {.features = 8}) == "");
}
TEST_CASE("pages know whether somebody read or wrote them, however many they are") {
  for (const std::size_t bytes : {std::size_t(64), 3_GiB, 512_GiB}) {
    detail::untouched_pages pages(bytes, 64);
    if (!pages.mapped() || pages.touched()) continue;  // on a system that does not say
    auto at = pages.memory().take<double>(1, 1);
    const volatile double& number = at(0, 0);
    CHECK(number == 0);
    CHECK(pages.touched());
  }
  CHECK_FALSE(detail::untouched_pages(uncountable, 1).mapped());
}
