#include <streambp/cpu/scan.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

// Of one row, empty and long; the second batch has two prompts, with three completions (one of them
// empty) and one.
const packed plain({0, 9, 10, 10, 37});
const packed family({0, 6, 6, 9, 14, 21, 26, 37}, {-1, 0, 0, 0, -1, -1, 5});
constexpr position rows = 37;

template <class S>
struct scan_input {
  guarded<S> f, c, initial, dh;
  explicit scan_input(position d, position skew = 1)
      : f(rows, d, 1, 0.49, 0.5, skew),
        c(rows, d, 2, 1., 0., skew),
        initial(1, d, 3, 1., 0., skew),
        dh(rows, d, 4, 1., 0., skew) {}
};

template <class S>
struct scan_run {
  guarded<S> h, df, dc, dinitial;
};

// Chunks ascending, then descending, the state and its gradient handed over at their edges.
template <class S>
scan_run<S> run(int threads, const packed& samples, const scan_input<S>& in, bool with_initial,
                const std::vector<position>& edges) {
  const position d = (*in.f).cols, parents = samples.parent_count();
  const auto chunks = position(edges.size()) - 1;
  scan_run<S> r{{rows, d}, {rows, d, 3}, {rows, d, 4}, {1, d, 5, 1., 0.}};
  device<S> on(threads);
  guarded<S> states(chunks + 1, d), dstates(chunks + 1, d), ends(parents, d), dends(parents, d);
  for (const guarded<S>* added_to : {&dstates, &dends})
    for (position i = 0; i < (**added_to).rows; ++i) std::fill_n((**added_to).row(i), d, S(0));
  const auto own = [&](position k) {
    return row_range{edges[std::size_t(k)], edges[std::size_t(k) + 1]};
  };
  const auto states_of = [&](position k) {
    return carry_rows<S>{&samples,
                         own(k),
                         (*states).middle_rows(k, 1),
                         (*dstates).middle_rows(k, 1),
                         (*states).middle_rows(k + 1, 1),
                         (*dstates).middle_rows(k + 1, 1),
                         with_initial ? view<const S>(*in.initial) : view<const S>(),
                         with_initial ? *r.dinitial : view<S>(),
                         *ends,
                         *dends};
  };
  for (position k = 0; k < chunks; ++k)
    scan_forward(on, piece_list(samples, own(k)), states_of(k), (*in.f).rows_in(own(k)),
                 (*in.c).rows_in(own(k)), (*r.h).rows_in(own(k)));
  for (position k = chunks; k-- > 0;)
    scan_backward(on, piece_list(samples, own(k)), states_of(k), (*in.f).rows_in(own(k)),
                  (*in.c).rows_in(own(k)), (*r.h).rows_in(own(k)), (*in.dh).rows_in(own(k)),
                  (*r.df).rows_in(own(k)), (*r.dc).rows_in(own(k)));
  for (const auto* all : {&states, &dstates, &ends, &dends}) CHECK(all->intact());
  return r;
}

double naive_h(const packed& samples, const scan_input<double>& in, bool with_initial, position row,
               position j) {
  const position segment = samples.segment_at(row), parent = samples.parent(segment);
  double h = parent >= 0 ? naive_h(samples, in, with_initial, samples.segment(parent).last - 1, j)
             : with_initial ? in.initial(0, j)
                            : 0;
  for (position t = samples.segment(segment).first; t <= row; ++t)
    h = in.f(t, j) * h + (1 - in.f(t, j)) * in.c(t, j);
  return h;
}

}  // namespace

TEST_CASE_TEMPLATE("scan: values, and bits in any chunks, places and threads", S, float, double) {
  for (const packed& samples : {plain, family})
    for (position d : widths)
      for (bool with_initial : {true, false}) {
        const scan_input<S> in(d), moved(d, 5);
        const scan_input<double> wide(d);
        const auto once = run<S>(1, samples, in, with_initial, {0, rows});
        CHECK(error_of(*once.h, [&](position i, position j) {
                return naive_h(samples, wide, with_initial, i, j);
              }) < tight<S>);
        for (const auto& edges :
             {std::vector<position>{0, 9, 10, rows}, {0, 4, 5, 20, 21, rows}, {0, 10, 36, rows}}) {
          const auto again = run<S>(2, samples, moved, with_initial, edges);
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
  for (const packed& samples : {plain, family})
    for (position d : {3, 17})
      for (bool with_initial : {true, false}) {
        scan_input<double> in(d);
        const auto r = run<double>(1, samples, in, with_initial, {0, 5, 20, rows});
        const guarded<double> before(1, d, 5, 1., 0.);
        const auto loss_of = [&](position j) {
          double loss = 0;
          for (position i = 0; i < rows; ++i)
            loss += in.dh(i, j) * naive_h(samples, in, with_initial, i, j);
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
  for (const packed& samples : {plain, family})
    for (position d : widths) {
      const auto ours = run<float>(1, samples, scan_input<float>(d), true, {0, rows});
      const auto right = run<double>(1, samples, scan_input<double>(d), true, {0, rows});
      CHECK(error_of(*ours.df, [&](position i, position j) { return right.df(i, j); }) < 1e-5);
      CHECK(error_of(*ours.dc, [&](position i, position j) { return right.dc(i, j); }) < 1e-5);
    }
}

TEST_CASE("scan: a full gate keeps the state exactly") {
  for (const packed& samples : {plain, family}) {
    scan_input<float> in(17);
    for (position i = 0; i < rows; ++i)
      for (position j = 0; j < 17; ++j) in.f(i, j) = 1;
    const auto r = run<float>(1, samples, in, true, {0, rows});
    CHECK(error_of(*r.h, [&](position, position j) { return in.initial(0, j); }) == 0);
  }
}

TEST_CASE("scan: a segment that goes on from a parent has the bits of one that holds both") {
  const packed apart({0, 14, rows}, {-1, 0}), joined({0, rows});
  const scan_input<float> in(17);
  const auto a = run<float>(1, apart, in, true, {0, 8, rows});
  const auto b = run<float>(1, joined, in, true, {0, rows});
  CHECK(same_bits(a.h, b.h));
  CHECK(same_bits(a.df, b.df));
  CHECK(same_bits(a.dc, b.dc));
  CHECK(same_bits(a.dinitial, b.dinitial));
}
