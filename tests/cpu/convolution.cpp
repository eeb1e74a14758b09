#include <streambp/cpu/convolution.hpp>

#include <doctest/doctest.h>

#include "carried.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 37;
const packed plain({0, 9, 10, 10, rows});
const packed family({0, 6, 6, 9, 14, 21, 26, rows}, {-1, 0, 0, 0, -1, -1, 5});

template <class S>
struct convolution_input {
  guarded<S> x, w, b, dy, initial;
  convolution_input(position taps, position d, position skew = 1)
      : x(rows, d, 1, 1., 0., skew),
        w(taps, d, 2, 1., 0., skew),
        b(1, d, 3, 1., 0., skew),
        dy(rows, d, 4, 1., 0., skew),
        initial(1, (taps - 1) * d, 5, 1., 0., skew) {}
};

template <class S>
struct convolution_run {
  guarded<S> y, dx, dw, dinitial;
};

template <class S>
convolution_run<S> run(int threads, const packed& samples, const convolution_input<S>& in,
                       const std::vector<position>& edges,
                       streambp::write how = streambp::write::add) {
  const position d = (*in.x).cols, taps = (*in.w).rows;
  convolution_run<S> r{
      {rows, d}, {rows, d, 6, 1., 0.}, {taps, d, 7, 1., 0.}, {1, (taps - 1) * d, 8, 1., 0.}};
  device<S> on(threads);
  carried<S> states(samples, edges, (taps - 1) * d, *in.initial, *r.dinitial);
  for (position c = 0; c < states.chunks(); ++c)
    convolution_forward(on, states.pieces(c), states.at(c), (*in.x).rows_in(states.rows(c)), *in.w,
                        *in.b, (*r.y).rows_in(states.rows(c)));
  for (position c = states.chunks(); c-- > 0;) {
    const row_range own = states.rows(c);
    std::vector<position> grains;  // every fifth row, whatever the chunks
    for (position row = 0; row <= rows; ++row)
      if (row >= own.first && row <= own.last && (row % 5 == 0 || row == rows))
        grains.push_back(row);
    add_tap_gradients(on, states.pieces(c), states.at(c), (*in.x).rows_in(own),
                      (*in.dy).rows_in(own), *r.dw, grains);
    convolution_backward(on, states.pieces(c), states.at(c), *in.w, (*in.dy).rows_in(own),
                         (*r.dx).rows_in(own), how);
  }
  CHECK(states.intact());
  for (const auto* m : {&r.y, &r.dx, &r.dw, &r.dinitial}) CHECK(m->intact());
  return r;
}

// What stands `back` rows before row t: a row of x, or, from -1 down, one of the initial state's.
position row_behind(const packed& samples, position t, position back) {
  const position segment = samples.segment_at(t), at = t - samples.segment(segment).first;
  if (back <= at) return t - back;
  const position parent = samples.parent(segment);
  return parent < 0 ? at - back
                    : row_behind(samples, samples.segment(parent).last - 1, back - at - 1);
}

// Calls f(t, tap, row behind).
template <class F>
void each_term(const packed& samples, position taps, const F& f) {
  for (position t = 0; t < rows; ++t)
    for (position i = 0; i < taps; ++i) f(t, i, row_behind(samples, t, i));
}

}  // namespace

TEST_CASE_TEMPLATE("convolution: values and gradients", S, float, double) {
  for (const packed& samples : {plain, family})
    for (const position taps : {1, 2, 4, 11})
      for (const position d : {1, 17, 70}) {
        CAPTURE(taps);
        CAPTURE(d);
        const auto ours = run<S>(1, samples, convolution_input<S>(taps, d), {0, rows});
        const convolution_input<double> in(taps, d);
        guarded<double> y(rows, d), dx(rows, d, 6, 1., 0.), dw(taps, d, 7, 1., 0.),
            dinitial(1, (taps - 1) * d, 8, 1., 0.);
        for (position j = 0; j < d; ++j) {
          for (position t = 0; t < rows; ++t) y(t, j) = in.b(0, j);
          each_term(samples, taps, [&](position t, position i, position from) {
            const position state = (from + taps - 1) * d + j;
            const double x = from >= 0 ? in.x(from, j) : in.initial(0, state);
            y(t, j) += in.w(i, j) * x;
            dw(i, j) += in.dy(t, j) * x;
            (from >= 0 ? dx(from, j) : dinitial(0, state)) += in.w(i, j) * in.dy(t, j);
          });
        }
        const double room = sizeof(S) == 4 ? 3e-6 : 1e-14;
        CHECK(error_of(*ours.y, [&](position i, position j) { return y(i, j); }) < room);
        CHECK(error_of(*ours.dx, [&](position i, position j) { return dx(i, j); }) < room);
        CHECK(error_of(*ours.dw, [&](position i, position j) { return dw(i, j); }) < room);
        CHECK(error_of(*ours.dinitial, [&](position i, position j) { return dinitial(i, j); }) <
              room);
        const auto assigned =
            run<S>(1, samples, convolution_input<S>(taps, d), {0, rows}, streambp::write::assign);
        CHECK(error_of(*assigned.dx, [&](position i, position j) {
                return dx(i, j) - wave(i, j, 6);
              }) < 2 * room);
      }
}

TEST_CASE_TEMPLATE("convolution: the same bits in any chunks, places and threads", S, float,
                   double) {
  for (const packed& samples : {plain, family})
    for (const position taps : {1, 4, 11})
      for (const position d : {1, 17, 70}) {
        const auto once = run<S>(1, samples, convolution_input<S>(taps, d), {0, rows});
        for (const auto& edges : {std::vector<position>{0, 5, 10, 15, rows}, {0, 20, 25, rows}}) {
          const auto again = run<S>(2, samples, convolution_input<S>(taps, d, 5), edges);
          CHECK(same_bits(once.y, again.y));
          CHECK(same_bits(once.dx, again.dx));
          CHECK(same_bits(once.dw, again.dw));
          CHECK(same_bits(once.dinitial, again.dinitial));
        }
      }
}

TEST_CASE(
    "convolution: without a state, zeros stand before a sample, and without a bias none is added") {
  const convolution_input<double> in(4, 3);
  device<double> on(1);
  carried<double> states(plain, {0, rows}, 9);
  guarded<double> y(rows, 3);
  convolution_forward(on, states.pieces(0), states.at(0), *in.x, *in.w, {}, *y);
  CHECK(error_of(*y, [&](position t, position j) {
          double sum = 0;
          for (position i = 0; i < 4; ++i)
            if (const position from = row_behind(plain, t, i); from >= 0)
              sum += in.w(i, j) * in.x(from, j);
          return sum;
        }) < tight<double>);
}
