#include <streambp/laws/central_differences.hpp>

#include <doctest/doctest.h>

#include <streambp/laws/hold.hpp>

namespace streambp::laws {
namespace {

// y = w x, entry by entry, with twice the gradient of w.
struct doubled_gradient {
  static constexpr tag<"w"> w{};
  static constexpr const char* name = "gain";

  auto slots() const { return std::tuple{parameter(w, 1, 4, ones)}; }
  void forward(auto& at, auto x, auto y) const {
    for (position r = 0; r < x.rows; ++r)
      for (position j = 0; j < 4; ++j) y(r, j) = at[w](0, j) * x(r, j);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    for (position r = x.rows; r-- > 0;)
      for (position j = 0; j < 4; ++j) dx(r, j) += at[w](0, j) * dy(r, j);
    if (!at.trains(w)) return;
    for (position r = x.rows; r-- > 0;)
      for (position j = 0; j < 4; ++j) at.d(w)(0, j) += 2 * dy(r, j) * x(r, j);
  }
};

TEST_CASE("the last block whose gradient is wrong is named: its fault spoils those before it") {
  const report r = hold(doubled_gradient{}, rows(37, 4));
  std::ostringstream text;
  text << r;
  INFO(text.str());
  CHECK(r.breaks(law::central_differences));
  CHECK(text.str().find("gradient of blocks.1.gain.w, row 0, column 0 is ") != std::string::npos);

  const auto named = [](const char* name, tensor_kind kind) {
    return tensor{name, kind, 1, 0, {}};
  };
  std::string order;
  const std::vector<tensor> all{named("y", tensor_kind::output), named("a", tensor_kind::parameter),
                                named("b", tensor_kind::parameter), named("x", tensor_kind::input)};
  for (const tensor* t : in_order_of_backward(all)) order += t->name;
  CHECK(order == "bax");
}

TEST_CASE("slopes are exact for polynomials of degree four, near for others, steep ones too") {
  const auto error = [](auto f, double right) { return std::abs(slope_at_0(f) - right); };
  CHECK(error([](double h) { return 3 + 2 * h - h * h + h * h * h - 5 * h * h * h * h; }, 2) <
        1e-12);
  CHECK(error([](double h) { return std::exp(h); }, 1) < 1e-11);
  CHECK(error([](double h) { return std::sin(3 * h); }, 3) < 1e-10);
  CHECK(error([](double h) { return std::tanh(1e4 * h); }, 1e4) < 1e-5);
  CHECK(error([](double h) { return std::abs(h + 1e-4); }, 1) < 1e-8);  // a kink within the step
}

}  // namespace
}  // namespace streambp::laws
