// Copies, sums and scalings of rows, and the bias.
#pragma once

#include <algorithm>
#include <span>

#include "../primitives/elementwise.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
void fill(workers<S>& on, S value, view<S> y) {
  for_rows(on, y.rows, y.cols, [&](position i) { std::fill_n(y.row(i), y.cols, value); });
}
template <class S>
void zero(workers<S>& on, view<S> y) {
  fill(on, S(0), y);
}

template <class S>
void shift(workers<S>& on, double value, view<S> y) {
  for_rows(on, y.rows, y.cols, [&](position i) {
    for (position j = 0; j < y.cols; ++j) y(i, j) += S(value);
  });
}

template <class S>
void copy(workers<S>& on, given<S> x, view<S> y) {
  for_rows(on, y.rows, y.cols,
           [&](position i) { std::copy(x.row(i), x.row(i) + y.cols, y.row(i)); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void sum_row(const S* a, const S* b, position d, S* y) {
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(a + j, n) + load(b + j, n)); });
}

template <class S>
void sum(workers<S>& on, given<S> x1, given<S> x2, view<S> y) {
  for_rows(on, y.rows, y.cols,
           [&](position i) { sum_row(x1.row(i), x2.row(i), y.cols, y.row(i)); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void scale_row(const S* x, S factor, position d, S* y) {
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(x + j, n) * factor); });
}

template <class S>
void scale(workers<S>& on, double factor, view<S> y) {
  for_rows(on, y.rows, y.cols,
           [&](position i) { scale_row<S>(y.row(i), S(factor), y.cols, y.row(i)); });
}

template <class S>
void add_bias(workers<S>& on, given<S> b, view<S> y) {
  for_rows(on, y.rows, y.cols, [&](position i) { sum_row<S>(y.row(i), b.data, y.cols, y.row(i)); });
}

template <class S>
void add_column_sums(workers<S>& on, given<S> dy, view<S> db, std::span<const position> grains) {
  add_row_sums(on, grains, dy.cols, db.data,
               [&](position i, position j, auto n) { return load(dy.row(i) + j, n); });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
