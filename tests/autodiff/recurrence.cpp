// Layers that carry a state.
#include "beside.hpp"

namespace streambp {
namespace {

// How one recurrence is written.
enum class form { by_scan, row_by_row, read_again };

struct derived_gated {
  using by_hand = gated_recurrence;
  static constexpr auto sees = past;
  position width, states;
  form as = form::by_scan;
  auto slots() const {
    return std::tuple{
        parameter(by_hand::wf, states, width, zeros), parameter(by_hand::bf, 1, states, zeros),
        parameter(by_hand::wc, states, width, zeros), parameter(by_hand::bc, 1, states, zeros),
        parameter(by_hand::wo, width, states, zeros), carry(by_hand::state, 1, states)};
  }
  auto forward(auto& at, auto x) const {
    const auto f = sigmoid(matmul(x, at[by_hand::wf]) + at[by_hand::bf]);
    const auto c = matmul(x, at[by_hand::wc]) + at[by_hand::bc];
    if (as == form::read_again) {  // gates that others read, too
      const auto h = scan(f, f, at.states(by_hand::state));
      return matmul(h * f + h, at[by_hand::wo]) + x * row_mean(f) + row_sum(c);
    }
    const auto h =
        as == form::by_scan
            ? scan(f, c, at.states(by_hand::state))
            : at.recur(by_hand::state, [&](auto before) { return f * before + (1 - f) * c; });
    return matmul(h, at[by_hand::wo]);
  }
};

struct named {
  static constexpr tag<"w"> w{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"b"> b{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"g"> g{};
};

// Elman 1990: h[t] = tanh(h[t-1] uᵀ + x wᵀ + b). LSTM (Hochreiter and Schmidhuber 1997) with a
// forget gate: the state is (h, c).
struct recurrent : named {
  position width;
  bool lstm;
  int sums = 0;  // of one long expression, which is computed again for each
  recurrent(position width, bool lstm) : width(width), lstm(lstm) {}

  auto slots(position in) const {
    const position gates = lstm ? 4 * width : width;
    return std::tuple{parameter(w, gates, in, zeros), parameter(u, gates, width, zeros),
                      parameter(b, 1, gates, zeros), carry(h, 1, lstm ? 2 * width : width)};
  }
  auto forward(auto& at, auto x) const {
    const position d = width;
    const auto zx = matmul(x, at[w]);
    if (!lstm)
      return at.recur(h, [&](auto before) {
        auto after = tanh(matmul(before, at[u]) + zx + at[b]);
        auto bent = after;
        for (int i = 0; i < 2 * sums; ++i) bent = tanh(bent);
        for (int i = 0; i < sums; ++i) after = after + row_sum(bent);
        return after;
      });
    const auto both = at.recur(h, [&](auto before) {
      const auto z = matmul(slice(before, 0, d), at[u]) + zx + at[b];
      const auto c = sigmoid(slice(z, 0, d)) * slice(before, d, d) +
                     sigmoid(slice(z, d, d)) * tanh(slice(z, 2 * d, d));
      return concatenate(sigmoid(slice(z, 3 * d, d)) * tanh(c), c);
    });
    return slice(both, 0, d);
  }
};

// A step with a norm, a weight used twice, rows of outside, and a second recurrence on top.
struct twice : named {
  auto slots(position in) const {
    return std::tuple{parameter(w, in, in, zeros), parameter(u, in, in, zeros),
                      parameter(b, 1, in, ones), carry(h, 1, in), carry(g, 1, in)};
  }
  auto forward(auto& at, auto x) const {
    const auto z = matmul(x, at[w]);
    const auto first = at.recur(h, [&](auto before) {
      return tanh(rms_normalise(matmul(before, at[u]) + z, 0.1) * at[b]) +
             0.5 * softmax(matmul(z * before, at[u]));
    });
    const auto second =
        at.recur(g, [&](auto before) { return silu(first - 0.3 * before) * at[b]; });
    return first * second + z;
  }
};

TEST_CASE("recurrences keep the laws") {
  for (const form as : {form::by_scan, form::row_by_row, form::read_again}) {
    CAPTURE(int(as));
    CHECK(laws::hold(derived_gated{6, 5, as}, laws::rows(37, 6)));
  }
  for (const bool lstm : {false, true}) {
    CAPTURE(lstm);
    CHECK(laws::hold(recurrent(6, lstm), laws::rows(37, 6)));
  }
  laws::setting alone = laws::rows(37, 6);
  alone.twice = false;  // two in a row bend more than the tolerance of differences allows
  CHECK(laws::hold(twice{}, alone));
}

TEST_CASE("a step that is too long is refused") {
  recurrent layer(6, false);
  layer.sums = 17;
  const laws::report r = laws::hold(layer, laws::rows(37, 6));
  REQUIRE(r.findings().size() == 1);
  const std::string said = r.findings()[0].what;
  INFO(said);
  CHECK(said.starts_with("fp64: a step throws: blocks.0.layer: at.recur: "));
  CHECK(said.ends_with(
      ": at.recur: the step has more than 512 entry-wise terms; what does not depend on the row "
      "before is computed outside of it"));
}

struct carried_twice : derived_gated {
  auto forward(auto& at, auto x) const {
    const auto f = sigmoid(x);
    return scan(f, x, at.states(by_hand::state)) + scan(f, f, at.states(by_hand::state));
  }
};

TEST_CASE("a state is carried by one recurrence") {
  CHECK_THROWS_WITH_AS(
      layer_traits<carried_twice>::slots(carried_twice{{6, 6}}, 6),
      "layer: autodiff: slot 5 of the layer is written twice; give each memory and each "
      "carry a slot of its own",
      shape_error);
}

TEST_CASE("a gated recurrence gives what is written by hand") {
  const std::size_t row = 16 * 8;
  same_as_by_hand(derived_gated{24, 20}, gated_recurrence(24, 20), 24, 20 * row);
  same_as_by_hand(derived_gated{24, 20, form::row_by_row}, gated_recurrence(24, 20), 24, 100 * row);
}

}  // namespace
}  // namespace streambp
