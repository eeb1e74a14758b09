#include <streambp/cpu/lstm.hpp>

#include <doctest/doctest.h>

#include <array>

#include "carried.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 33;
// A prompt with three completions (one empty, one of one row), and five other samples, one of one
// row and one empty: more at a step than go abreast.
const packed samples({0, 7, 8, 8, 13, 24, 24, 25, 30, rows}, {-1, -1, -1, -1, 0, 0, 0, -1, -1});

template <class S>
struct lstm_input {
  guarded<S> w, z, dy, initial;  // initial: h, then c
  explicit lstm_input(position units, position skew = 1)
      : w(4 * units, units, 1, 1 / std::sqrt(double(units)), 0., skew),
        z(rows, 4 * units, 2, 1., 0., skew),
        dy(rows, units, 3, 1., 0., skew),
        initial(1, 2 * units, 4, 1., 0., skew) {}
};

template <class S>
struct lstm_run {
  guarded<S> gates, c, h, dz, dinitial;
  std::array<const guarded<S>*, 5> all() const { return {&gates, &c, &h, &dz, &dinitial}; }
};

// Chunks ascending, then descending; dinitial holds something before.
template <class S>
lstm_run<S> run(int threads, const lstm_input<S>& in, const std::vector<position>& edges,
                bool with_initial = true) {
  const position units = (*in.w).cols;
  guarded<S> z = in.z, c(rows, units), h(rows, units), dh(rows, units), dc(rows, units),
             dinitial(1, 2 * units, 5, 1., 0.);
  device<S> on(threads);
  const carried<S> states(samples, edges, 2 * units, with_initial ? *in.initial : view<S>(),
                          with_initial ? *dinitial : view<S>());
  for (position k = 0; k < states.chunks(); ++k) {
    const row_range own = states.rows(k);
    lstm_forward(on, states.pieces(k), states.at(k), *in.w, (*z).rows_in(own), (*c).rows_in(own),
                 (*h).rows_in(own));
  }
  const guarded<S> gates = z;
  for (position k = states.chunks(); k-- > 0;) {
    const row_range own = states.rows(k);
    lstm_backward(on, states.pieces(k), states.at(k), *in.w, (*z).rows_in(own), (*c).rows_in(own),
                  (*in.dy).rows_in(own), (*dh).rows_in(own), (*dc).rows_in(own));
  }
  CHECK(on.flops() == 2 * 2 * rows * 4 * units * units);
  CHECK((states.intact() && dh.intact() && dc.intact()));
  return {gates, c, h, z, dinitial};
}

// The row that row t goes on from; -1: the initial state.
position row_before(position t) {
  const position segment = samples.segment_at(t), parent = samples.parent(segment);
  if (t > samples.segment(segment).first) return t - 1;
  return parent < 0 ? -1 : samples.segment(parent).last - 1;
}

// Token by token; c' = f ∘ c + i ∘ g, h = o ∘ tanh(c').
lstm_run<double> naive(const lstm_input<double>& in) {
  const position d = (*in.w).cols;
  lstm_run<double> y{in.z, {rows, d}, {rows, d}, in.z, {1, 2 * d, 5, 1., 0.}};
  const auto sigma = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto state = [&](position t, const guarded<double>& of, position first) {
    return t < 0 ? (*in.initial).data + first : (*of).row(t);
  };
  for (position t = 0; t < rows; ++t) {
    const position before = row_before(t);
    const double *h = state(before, y.h, 0), *c = state(before, y.c, d);
    for (position j = 0; j < 4 * d; ++j)
      for (position k = 0; k < d; ++k) y.gates(t, j) += in.w(j, k) * h[k];
    for (position j = 0; j < 4 * d; ++j)
      y.gates(t, j) = j / d == 2 ? std::tanh(y.gates(t, j)) : sigma(y.gates(t, j));
    for (position j = 0; j < d; ++j) {
      y.c(t, j) = y.gates(t, d + j) * c[j] + y.gates(t, j) * y.gates(t, 2 * d + j);
      y.h(t, j) = y.gates(t, 3 * d + j) * std::tanh(y.c(t, j));
    }
  }
  guarded<double> dh = in.dy, dc(rows, d, 1, 0., 0.);
  for (position t = rows; t-- > 0;) {
    const position before = row_before(t);
    const double* const c = state(before, y.c, d);
    double* const dh_before = before < 0 ? (*y.dinitial).data : (*dh).row(before);
    double* const dc_before = before < 0 ? (*y.dinitial).data + d : (*dc).row(before);
    for (position j = 0; j < d; ++j) {
      const double i = y.gates(t, j), f = y.gates(t, d + j), g = y.gates(t, 2 * d + j),
                   o = y.gates(t, 3 * d + j), squashed = std::tanh(y.c(t, j));
      const double inner = dc(t, j) + dh(t, j) * o * (1 - squashed * squashed);
      y.dz(t, j) = inner * g * i * (1 - i);
      y.dz(t, d + j) = inner * c[j] * f * (1 - f);
      y.dz(t, 2 * d + j) = inner * i * (1 - g * g);
      y.dz(t, 3 * d + j) = dh(t, j) * squashed * o * (1 - o);
      dc_before[j] += inner * f;
    }
    for (position j = 0; j < 4 * d; ++j)
      for (position k = 0; k < d; ++k) dh_before[k] += y.dz(t, j) * in.w(j, k);
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("lstm: values and gradients, and their bits in any chunks, places and threads",
                   S, float, double) {
  for (const position units : {1, 5, 17, 67}) {
    CAPTURE(units);
    const auto once = run<S>(1, lstm_input<S>(units), {0, rows});
    const auto right = naive(lstm_input<double>(units));
    for (std::size_t k = 0; k < once.all().size(); ++k) {
      CAPTURE(k);
      CHECK(error_of(**once.all()[k], **right.all()[k]) < (sizeof(S) == 4 ? 3e-6 : 1e-14));
      CHECK(once.all()[k]->intact());
    }
    for (const auto& edges : {std::vector<position>{0, 7, 8, 13, 24, 25, rows},
                              {0, 3, 10, 11, 26, 32, rows},
                              {0, 1, 2, 7, 8, 23, 24, 25, 32, rows}}) {
      const auto again = run<S>(2, lstm_input<S>(units, 5), edges);
      for (std::size_t k = 0; k < once.all().size(); ++k) {
        CHECK(same_bits(*once.all()[k], *again.all()[k]));
        CHECK(again.all()[k]->intact());
      }
    }
  }
}

TEST_CASE("lstm: no initial state is one of zeros") {
  lstm_input<double> in(17);
  for (position j = 0; j < 2 * 17; ++j) in.initial(0, j) = 0;
  const auto zeros = run<double>(1, in, {0, 10, rows}), none = run<double>(1, in, {0, rows}, false);
  for (std::size_t k = 0; k + 1 < none.all().size(); ++k)
    CHECK(same_bits(*zeros.all()[k], *none.all()[k]));
  CHECK(same_bits(none.dinitial, guarded<double>(1, 2 * 17, 5, 1., 0.)));
}

TEST_CASE("lstm: a device without threads counts and touches nothing") {
  device<float> on;
  const view<float> w(nullptr, 4 * 512, 512), z(nullptr, 1000, 4 * 512), h(nullptr, 1000, 512);
  const packed one = packed::one(1000);
  lstm_forward(on, piece_list(one, {0, 1000}), carry_rows<float>{}, w, z, h, h);
  CHECK(on.flops() == 2 * 1000 * 4 * 512 * 512);
}
