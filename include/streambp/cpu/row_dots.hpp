// Products of a few rows with a matrix where they lie, without packing: what a recurrence does once
// a token. A row's bits do not depend on the rows beside it.
#pragma once

#include "../core/view.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// y_r[i] += w_i · x_r for the rows w_i of w and `count` pairs of rows x_r, y_r.
template <int count, class S>
[[gnu::noinline, gnu::flatten]] void add_row_dots(view<const S> w, const S* const* x, S* const* y) {
  for (position i = 0; i < w.rows; ++i) {
    lanes<S> total[count];
    for (lanes<S>& t : total) t = 0;
    along<S>(w.cols, [&](position k, auto n) {
      const lanes<S> wk = load(w.row(i) + k, n);
      for (int r = 0; r < count; ++r) total[r] = fma(wk, load(x[r] + k, n), total[r]);
    });
    for (int r = 0; r < count; ++r) y[r][i] += sum(total[r]);
  }
}

// y_r += Σ_i x_r[i] w_i, first row first, for `groups` lanes of columns at a time.
template <int count, int groups, class S, class Columns>
[[gnu::noinline, gnu::flatten]] void add_row_mix(view<const S> w, position j, Columns n,
                                                 const S* const* x, S* const* y) {
  constexpr position width = lanes<S>::count;
  lanes<S> total[count][groups];
  for (int r = 0; r < count; ++r)
    for (int g = 0; g < groups; ++g) total[r][g] = load<S>(y[r] + j + g * width, n);
  for (position i = 0; i < w.rows; ++i)
    for (int g = 0; g < groups; ++g) {
      const lanes<S> wi = load<S>(w.row(i) + j + g * width, n);
      for (int r = 0; r < count; ++r) total[r][g] = fma(wi, lanes<S>(x[r][i]), total[r][g]);
    }
  for (int r = 0; r < count; ++r)
    for (int g = 0; g < groups; ++g) store(y[r] + j + g * width, n, total[r][g]);
}
template <int count, class S>
void add_row_mix(view<const S> w, const S* const* x, S* const* y) {
  constexpr int groups = count == 1 ? 4 : 2;
  constexpr position step = groups * lanes<S>::count;
  position j = 0;
  for (; j + step <= w.cols; j += step) add_row_mix<count, groups>(w, j, whole<S>{}, x, y);
  along<S>(w.cols - j, [&](position k, auto n) { add_row_mix<count, 1>(w, j + k, n, x, y); });
}

// Calls f with the number of rows, 1 to 4, as a constant.
template <class F>
void with_count(int rows, const F& f) {
  switch (rows) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
  }
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
