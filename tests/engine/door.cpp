#include <streambp/engine/door.hpp>

#include <doctest/doctest.h>

#include <streambp/streambp.hpp>

#include <cstring>

using namespace streambp;

namespace {

// Written for one engine and one scalar: only the true site fits.
struct doubles_only {
  template <class Device>
  void forward(site<Device, doubles_only>& at, view<const double> x, view<double> y) const {
    copy(at.on, x, y);
  }
  template <class Device>
  void backward(site<Device, doubles_only>& at, view<const double>, view<const double>,
                view<const double> dy, view<double> dx) const {
    add(at.on, dy, dx);
  }
};

// Its return type is deduced, so that its body is looked at.
struct deduced {
  struct h_tag {
    static constexpr const char* name = "h";
  };
  auto slots(position in) const { return std::tuple{saved(h_tag{}, in)}; }
  auto forward(auto& at, auto x, auto y) const {
    copy(at.on, x, at[h_tag{}]);
    if (at.pieces().rows().rows() > 0) copy(at.on, at[h_tag{}], y);
  }
  auto backward(auto& at, auto, auto, auto dy, auto dx) const { add(at.on, dy, dx); }
};

template <class Scalar, class L>
constexpr bool explained_on_cpu() {
  using chain = decltype(embedding(8, 4) | std::declval<L>() | linear(4, 8));
  return explain_step<cpu::device<Scalar>, chain, cross_entropy>();
}

static_assert(fault_of_layer<doubles_only>() == layer_fault::no_forward);
static_assert(fault_of_layer<doubles_only, site<cpu::device<float>, doubles_only>>() ==
              layer_fault::no_forward);
static_assert(explained_on_cpu<double, doubles_only>());
static_assert(explained_on_cpu<float, deduced>() && explained_on_cpu<double, deduced>());

// Somebody's activation, and what makes it a layer.
struct their_silu {
  activation kind = activation::silu;
};
struct silu_layer {
  static constexpr const char* name = "silu";
  static constexpr bool counts_flops = true, backward_reads_output = false;
  const their_silu& module;
  void forward(auto& at, auto x, auto y) const { activation_forward(at.on, module.kind, x, y); }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    activation_backward(at.on, module.kind, x, dy, dx);
  }
};

template <class Model>
auto step_of(const Model& model) {
  const auto p = plan<double>(model, cross_entropy{}, packed({0, 5, 20}),
                              {.chunk = 8, .keep = false, .grains = {8, 8}});
  engine step(p, model, cross_entropy{});
  std::vector<double> parameters(std::size_t(step.parameters().parameters));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i] = double((i * 37) % 19) / 19 - 0.5;
  std::vector<std::int32_t> tokens(20);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * i % 8);
  batch<double> data;
  data.tokens = data.labels = tokens;
  return step.value_and_gradient(parameters, data);
}

}  // namespace

template <>
struct streambp::layer_traits<their_silu> : adapted_traits<their_silu, silu_layer> {};

TEST_CASE("door: an adapted type has the gradient of the layer that it stands for") {
  const auto [value, gradient] = step_of(embedding(8, 4) | residual(silu()) | linear(4, 8));
  const auto [theirs, their_gradient] =
      step_of(embedding(8, 4) | residual(their_silu{}) | linear(4, 8));
  CHECK(value == theirs);
  REQUIRE(gradient.size() == their_gradient.size());
  CHECK(std::memcmp(gradient.data(), their_gradient.data(), gradient.size() * sizeof(double)) == 0);
}

TEST_CASE("door: a layer written for the engine's own site runs") {
  const auto [value, gradient] = step_of(embedding(8, 4) | linear(4, 8));
  const auto [typed, typed_gradient] = step_of(embedding(8, 4) | doubles_only{} | linear(4, 8));
  const auto [by_body, body_gradient] = step_of(embedding(8, 4) | deduced{} | linear(4, 8));
  CHECK(value == typed);
  CHECK(value == by_body);
  CHECK(gradient == typed_gradient);
  CHECK(gradient == body_gradient);
}
