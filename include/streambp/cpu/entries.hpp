// Entry-wise functions given as code: y = f(x), and its gradient from a dual number a lane.
#pragma once

#include "../expression/dual.hpp"
#include "../primitives/entries.hpp"
#include "expression.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S, class F>
[[gnu::noinline, gnu::flatten]] void map_row(const F& f, const S* x, position d, S* y) {
  along<S>(d, [&](position j, auto n) {
    store(y + j, n, f.forward(autodiff::dual<lanes<S>>(load(x + j, n))).value);
  });
}
template <class S, class F>
[[gnu::noinline, gnu::flatten]] void differentiate_row(const F& f, const S* x, const S* dy,
                                                       position d, S* dx) {
  along<S>(d, [&](position j, auto n) {
    const auto y = f.forward(autodiff::dual<lanes<S>>::independent(load(x + j, n)));
    const lanes<S> g = load(dy + j, n);
    // Where no gradient comes none goes on, though the slope be infinite or NaN.
    const lanes<S> slope = select(lanes<S>(0) < abs(g), y.slope[0], lanes<S>(0));
    store(dx + j, n, fma(g, slope, load(dx + j, n)));
  });
}

template <class S, class F>
void map_entries(workers<S>& on, const F& f, given<S> x, view<S> y) {
  for_rows(on, x.rows, x.cols, [&](position i) { map_row(f, x.row(i), x.cols, y.row(i)); });
}

template <class S, class F>
void differentiate_entries(workers<S>& on, const F& f, given<S> x, given<S> dy, view<S> dx) {
  for_rows(on, x.rows, x.cols,
           [&](position i) { differentiate_row(f, x.row(i), dy.row(i), x.cols, dx.row(i)); });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
