// Layers that see their own row.
#include "beside.hpp"

#include <streambp/laws/count_allocations.hpp>

namespace streambp {
namespace {

struct squared_relu {
  static constexpr auto sees = row;
  auto forward(auto x) const { return square(max(x, 0)); }
};
struct smooth {
  double sharpness = 2;
  auto forward(auto x) const { return softplus(sharpness * x) / sharpness + tanh(x) * sigmoid(-x); }
};
struct derived_silu {
  auto forward(auto x) const { return silu(x); }
};

// y = (silu(x gateᵀ) ∘ x upᵀ) downᵀ
struct derived_mlp {
  using by_hand = gated_mlp;
  position width, inner;
  auto slots() const {
    return std::tuple{parameter(by_hand::gate, inner, width, zeros),
                      parameter(by_hand::up, inner, width, zeros),
                      parameter(by_hand::down, width, inner, zeros)};
  }
  auto forward(auto& at, auto x) const {
    return matmul(silu(matmul(x, at[by_hand::gate])) * matmul(x, at[by_hand::up]),
                  at[by_hand::down]);
  }
};

struct derived_linear {
  using by_hand = linear;
  position in, out;
  auto slots() const {
    return std::tuple{parameter(by_hand::weight, out, in, zeros),
                      parameter(by_hand::bias, 1, out, zeros)};
  }
  auto forward(auto& at, auto x) const {
    return matmul(x, at[by_hand::weight]) + at[by_hand::bias];
  }
};

struct derived_norm {
  using by_hand = layer_norm;
  position width;
  auto slots() const {
    return std::tuple{parameter(by_hand::gain, 1, width, ones),
                      parameter(by_hand::bias, 1, width, zeros)};
  }
  auto forward(auto& at, auto x) const {
    return normalise(x) * at[by_hand::gain] + at[by_hand::bias];
  }
};

// y = softmax(x wᵀ) ∘ x
struct softmax_gate {
  static constexpr tag<"weight"> weight{};
  auto slots(position in) const { return std::tuple{parameter(weight, in, in, zeros)}; }
  auto forward(auto& at, auto x) const { return softmax(matmul(x, at[weight])) * x; }
};
// The same by hand: p = softmax(x wᵀ), dz = p ∘ (dp - Σ dp ∘ p), dp = dy ∘ x, dx = dy ∘ p + dz w.
struct softmax_gate_by_hand : softmax_gate {
  static constexpr tag<"p"> p{};
  auto slots(position in) const {
    return std::tuple{parameter(weight, in, in, zeros), saved(p, in)};
  }
  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[weight], at[p]);
    if (at.on.counts_only()) return;
    for (position i = 0; i < x.rows; ++i) {
      double top = -1e300, sum = 0;
      for (position j = 0; j < x.cols; ++j) top = std::max(top, double(at[p](i, j)));
      for (position j = 0; j < x.cols; ++j) sum += at[p](i, j) = std::exp(at[p](i, j) - top);
      for (position j = 0; j < x.cols; ++j) y(i, j) = (at[p](i, j) /= sum) * x(i, j);
    }
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (!at.on.counts_only())
      for (position i = 0; i < x.rows; ++i) {
        double dot = 0;
        for (position j = 0; j < x.cols; ++j) dot += dy(i, j) * x(i, j) * at[p](i, j);
        for (position j = 0; j < x.cols; ++j) {
          dx(i, j) += dy(i, j) * at[p](i, j);
          at[p](i, j) *= dy(i, j) * x(i, j) - dot;
        }
      }
    add_weight_gradient(at.on, at[p], x, at.d(weight), at.grains());
    project_back(at.on, at[p], at[weight], dx, write::add);
  }
  static constexpr bool counts_flops = true;
};

// y = x ∘ (x wᵀ), whose second factor counts as a constant.
struct detached_gate : softmax_gate {
  auto forward(auto& at, auto x) const { return detach(matmul(x, at[weight])) * x; }
};
struct detached_gate_by_hand : softmax_gate_by_hand {
  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[weight], at[p]);
    if (at.on.counts_only()) return;
    for (position i = 0; i < x.rows; ++i)
      for (position j = 0; j < x.cols; ++j) y(i, j) = at[p](i, j) * x(i, j);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.on.counts_only()) return;
    for (position i = 0; i < x.rows; ++i)
      for (position j = 0; j < x.cols; ++j) dx(i, j) += at[p](i, j) * dy(i, j);
  }
};

struct boastful {
  position features(position) const { return 9; }
  auto forward(auto&, auto x) const { return square(x); }
};

// Others keep them operation by operation, in operations.cpp.
TEST_CASE("functions of an entry and a gated unit keep the laws") {
  CHECK(laws::hold(squared_relu{}, laws::rows(37, 4)));
  CHECK(laws::hold(smooth{}, laws::rows(37, 19)));
  CHECK(laws::hold(derived_mlp{6, 20}, laws::rows(37, 6)));
}

TEST_CASE("layers of rows give what is written by hand, in no more bytes") {
  same_as_by_hand(derived_silu{}, silu(), 24);
  same_as_by_hand(derived_mlp{24, 40}, swiglu(24, 40), 24);
  same_as_by_hand(derived_linear{24, 24}, linear(24, 24, true), 24, 16 * 24 * 8);
  same_as_by_hand(derived_norm{24}, layer_norm(24), 24,
                  2 * 16 * 24 * 8);  // Σ over rows of their terms
  same_as_by_hand(softmax_gate{}, softmax_gate_by_hand{}, 24, 16 * 25 * 8);
}

TEST_CASE("no gradient goes to what is detached") {
  same_as_by_hand(detached_gate{}, detached_gate_by_hand{}, 24);
}

TEST_CASE("a forward says how wide its rows are, and a layer may not say otherwise") {
  CHECK(layer_traits<derived_linear>::features(derived_linear{6, 5}, 6) == 5);
  CHECK_THROWS_WITH_AS(layer_traits<derived_linear>::features(derived_linear{6, 5}, 7),
                       "layer: matmul: x has 7 features, w has 5 rows of 6", shape_error);
  CHECK_THROWS_WITH_AS(layer_traits<boastful>::features(boastful{}, 7),
                       "layer: features says 9, its forward gives 7", shape_error);
}

}  // namespace
}  // namespace streambp
