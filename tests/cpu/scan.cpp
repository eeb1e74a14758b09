#include <streambp/cpu/scan.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

const packed samples({0, 9, 10, 10, 37});

template <class S>
struct scan_input {
  guarded<S> f, c, initial, dh;
  explicit scan_input(position d, position skew = 1)
      : f(37, d, 1, 0.49, 0.5, skew),
        c(37, d, 2, 1., 0., skew),
        initial(1, d, 3, 1., 0., skew),
        dh(37, d, 4, 1., 0., skew) {}
};

template <class S>
struct scan_run {
  guarded<S> h, df, dc, dinitial;
};

// Chunks ascending, then descending, the state and its gradient handed over at their edges.
template <class S>
scan_run<S> run(int threads, const scan_input<S>& in, bool with_initial,
                const std::vector<position>& edges) {
  const position d = (*in.f).cols;
  const std::size_t chunks = edges.size() - 1;
  scan_run<S> r{{37, d}, {37, d, 3}, {37, d, 4}, {1, d, 5, 1., 0.}};
  const view<const S> initial = with_initial ? *in.initial : view<S>();
  const view<S> dinitial = with_initial ? *r.dinitial : view<S>();
  device<S> on(threads);
  guarded<S> states(position(chunks) + 1, d), dstates(position(chunks) + 1, d);
  const auto own = [&](std::size_t k) { return row_range{edges[k], edges[k + 1]}; };
  for (std::size_t k = 0; k < chunks; ++k)
    scan_forward(on, piece_list(samples, own(k)), (*in.f).rows_in(own(k)), (*in.c).rows_in(own(k)),
                 initial, (*states).middle_rows(position(k), 1), (*r.h).rows_in(own(k)),
                 (*states).middle_rows(position(k) + 1, 1));
  for (std::size_t k = chunks; k-- > 0;)
    scan_backward(on, piece_list(samples, own(k)), (*in.f).rows_in(own(k)), (*in.c).rows_in(own(k)),
                  initial, (*states).middle_rows(position(k), 1), (*r.h).rows_in(own(k)),
                  (*in.dh).rows_in(own(k)), (*dstates).middle_rows(position(k) + 1, 1),
                  (*r.df).rows_in(own(k)), (*r.dc).rows_in(own(k)),
                  (*dstates).middle_rows(position(k), 1), dinitial);
  return r;
}

double naive_h(const scan_input<double>& in, bool with_initial, position row, position j) {
  double h = with_initial ? in.initial(0, j) : 0;
  for (position t = samples.segment(samples.segment_at(row)).first; t <= row; ++t)
    h = in.f(t, j) * h + (1 - in.f(t, j)) * in.c(t, j);
  return h;
}

}  // namespace

TEST_CASE_TEMPLATE("scan: values, and bits in any chunks, places and threads", S, float, double) {
  for (position d : widths)
    for (bool with_initial : {true, false}) {
      const scan_input<S> in(d), moved(d, 5);
      const scan_input<double> wide(d);
      const auto once = run<S>(1, in, with_initial, {0, 37});
      CHECK(error_of(*once.h, [&](position i, position j) {
              return naive_h(wide, with_initial, i, j);
            }) < tight<S>);
      for (const auto& edges :
           {std::vector<position>{0, 9, 10, 37}, {0, 4, 5, 20, 21, 37}, {0, 10, 36, 37}}) {
        const auto again = run<S>(2, moved, with_initial, edges);
        CHECK(same_bits(once.h, again.h));
        CHECK(same_bits(once.df, again.df));
        CHECK(same_bits(once.dc, again.dc));
        CHECK(same_bits(once.dinitial, again.dinitial));
        CHECK(again.h.intact());
        CHECK(again.df.intact());
        CHECK(again.dc.intact());
        CHECK(again.dinitial.intact());
      }
    }
}

TEST_CASE("scan: gradients are the slopes; that of the initial state is added") {
  for (position d : {3, 17})
    for (bool with_initial : {true, false}) {
      scan_input<double> in(d);
      const auto r = run<double>(1, in, with_initial, {0, 5, 20, 37});
      const guarded<double> before(1, d, 5, 1., 0.);
      const auto loss_of = [&](position j) {
        double loss = 0;
        for (position i = 0; i < 37; ++i) loss += in.dh(i, j) * naive_h(in, with_initial, i, j);
        return loss;
      };
      const auto by = [&](guarded<double>& x, position i, position j) {
        return slope(x(i, j), [&] { return loss_of(j); });
      };
      CHECK(error_of(*r.df, [&](position i, position j) { return by(in.f, i, j); }) < 1e-8);
      CHECK(error_of(*r.dc, [&](position i, position j) { return by(in.c, i, j); }) < 1e-8);
      CHECK(error_of(*r.dinitial, [&](position i, position j) {
              return before(i, j) + (with_initial ? by(in.initial, i, j) : 0);
            }) < 1e-8);
    }
}

TEST_CASE("scan: float gradients agree with double ones") {
  for (position d : widths) {
    const auto ours = run<float>(1, scan_input<float>(d), true, {0, 37});
    const auto right = run<double>(1, scan_input<double>(d), true, {0, 37});
    CHECK(error_of(*ours.df, [&](position i, position j) { return right.df(i, j); }) < 1e-5);
    CHECK(error_of(*ours.dc, [&](position i, position j) { return right.dc(i, j); }) < 1e-5);
  }
}

TEST_CASE("scan: a full gate keeps the state exactly") {
  scan_input<float> in(17);
  for (position i = 0; i < 37; ++i)
    for (position j = 0; j < 17; ++j) in.f(i, j) = 1;
  const auto r = run<float>(1, in, true, {0, 37});
  CHECK(error_of(*r.h, [&](position, position j) { return in.initial(0, j); }) == 0);
}
