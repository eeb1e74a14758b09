#include <streambp/cpu/gru.hpp>

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
struct gru_input {
  guarded<S> w, g, a, dy, initial;
  explicit gru_input(position units, position skew = 1)
      : w(3 * units, units, 1, 1 / std::sqrt(double(units)), 0., skew),
        g(rows, 3 * units, 2, 1., 0., skew),
        a(rows, units, 3, 1., 0., skew),
        dy(rows, units, 4, 1., 0., skew),
        initial(1, units, 5, 1., 0., skew) {}
};

template <class S>
struct gru_run {
  guarded<S> gates, a, h, dg, da, dinitial;
  std::array<const guarded<S>*, 6> all() const { return {&gates, &a, &h, &dg, &da, &dinitial}; }
};

// Chunks ascending, then descending; dinitial holds something before.
template <class S>
gru_run<S> run(int threads, const gru_input<S>& in, const std::vector<position>& edges,
               bool with_initial = true) {
  const position units = (*in.w).cols;
  guarded<S> g = in.g, a = in.a, h(rows, units), dh(rows, units), dinitial(1, units, 6, 1., 0.);
  device<S> on(threads);
  const carried<S> states(samples, edges, units, with_initial ? *in.initial : view<S>(),
                          with_initial ? *dinitial : view<S>());
  for (position c = 0; c < states.chunks(); ++c) {
    const row_range own = states.rows(c);
    gru_forward(on, states.pieces(c), states.at(c), *in.w, (*g).rows_in(own), (*a).rows_in(own),
                (*h).rows_in(own));
  }
  const guarded<S> gates = g, a_after = a;
  for (position c = states.chunks(); c-- > 0;) {
    const row_range own = states.rows(c);
    gru_backward(on, states.pieces(c), states.at(c), *in.w, (*g).rows_in(own), (*a).rows_in(own),
                 (*h).rows_in(own), (*in.dy).rows_in(own), (*dh).rows_in(own));
  }
  CHECK(on.flops() == 2 * 2 * rows * 3 * units * units);
  CHECK((states.intact() && dh.intact()));
  return {gates, a_after, h, g, a, dinitial};
}

// The row that row t goes on from; -1: the initial state.
position row_before(position t) {
  const position segment = samples.segment_at(t), parent = samples.parent(segment);
  if (t > samples.segment(segment).first) return t - 1;
  return parent < 0 ? -1 : samples.segment(parent).last - 1;
}

// Token by token; n = tanh(g_n + r ∘ a), h' = (1 - z) ∘ n + z ∘ h.
gru_run<double> naive(const gru_input<double>& in) {
  const position d = (*in.w).cols;
  gru_run<double> y{in.g, in.a, {rows, d}, in.g, in.a, {1, d, 6, 1., 0.}};
  const auto sigma = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (position t = 0; t < rows; ++t) {
    const double* h = row_before(t) < 0 ? (*in.initial).data : (*y.h).row(row_before(t));
    for (position j = 0; j < d; ++j) {
      for (position k = 0; k < d; ++k) {
        y.gates(t, j) += in.w(j, k) * h[k];
        y.gates(t, d + j) += in.w(d + j, k) * h[k];
        y.a(t, j) += in.w(2 * d + j, k) * h[k];
      }
      const double r = sigma(y.gates(t, j)), z = sigma(y.gates(t, d + j)),
                   n = std::tanh(in.g(t, 2 * d + j) + r * y.a(t, j));
      y.gates(t, j) = r, y.gates(t, d + j) = z, y.gates(t, 2 * d + j) = n;
      y.h(t, j) = (1 - z) * n + z * h[j];
    }
  }
  guarded<double> dh = in.dy;
  for (position t = rows; t-- > 0;) {
    const position before = row_before(t);
    const double* h = before < 0 ? (*in.initial).data : (*y.h).row(before);
    double* const passed = before < 0 ? (*y.dinitial).data : (*dh).row(before);
    for (position j = 0; j < d; ++j) {
      const double r = y.gates(t, j), z = y.gates(t, d + j), n = y.gates(t, 2 * d + j);
      const double inner = dh(t, j) * (1 - z) * (1 - n * n);
      const double dr = inner * y.a(t, j) * r * (1 - r), dz = dh(t, j) * (h[j] - n) * z * (1 - z);
      y.dg(t, j) = dr, y.dg(t, d + j) = dz, y.dg(t, 2 * d + j) = inner;
      y.da(t, j) = inner * r;
      passed[j] += dh(t, j) * z;
      for (position k = 0; k < d; ++k)
        passed[k] += dr * in.w(j, k) + dz * in.w(d + j, k) + inner * r * in.w(2 * d + j, k);
    }
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("gru: values and gradients, and their bits in any chunks, places and threads", S,
                   float, double) {
  for (const position units : {1, 5, 17, 67}) {
    CAPTURE(units);
    const auto once = run<S>(1, gru_input<S>(units), {0, rows});
    const auto right = naive(gru_input<double>(units));
    for (std::size_t k = 0; k < once.all().size(); ++k) {
      CAPTURE(k);
      CHECK(error_of(**once.all()[k], **right.all()[k]) < (sizeof(S) == 4 ? 3e-6 : 1e-14));
      CHECK(once.all()[k]->intact());
    }
    for (const auto& edges : {std::vector<position>{0, 7, 8, 13, 24, 25, rows},
                              {0, 3, 10, 11, 26, 32, rows},
                              {0, 1, 2, 7, 8, 23, 24, 25, 32, rows}}) {
      const auto again = run<S>(2, gru_input<S>(units, 5), edges);
      for (std::size_t k = 0; k < once.all().size(); ++k) {
        CHECK(same_bits(*once.all()[k], *again.all()[k]));
        CHECK(again.all()[k]->intact());
      }
    }
  }
}

TEST_CASE("gru: no initial state is one of zeros") {
  gru_input<double> in(17);
  for (position j = 0; j < 17; ++j) in.initial(0, j) = 0;
  const auto zeros = run<double>(1, in, {0, 10, rows}), none = run<double>(1, in, {0, rows}, false);
  for (std::size_t k = 0; k + 1 < none.all().size(); ++k)
    CHECK(same_bits(*zeros.all()[k], *none.all()[k]));
  CHECK(same_bits(none.dinitial, guarded<double>(1, 17, 6, 1., 0.)));
}

TEST_CASE("gru: a device without threads counts and touches nothing") {
  device<float> on;
  const view<float> w(nullptr, 3 * 512, 512), g(nullptr, 1000, 3 * 512), h(nullptr, 1000, 512);
  const packed one = packed::one(1000);
  gru_forward(on, piece_list(one, {0, 1000}), carry_rows<float>{}, w, g, h, h);
  CHECK(on.flops() == 2 * 1000 * 3 * 512 * 512);
}
