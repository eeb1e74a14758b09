// Copies, sums and scalings of rows, and the bias.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "../primitives/expect_shape.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// y = 0
template <class S>
void zero(device<S>& on, view<S> y) {
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols, [&](position i) { std::fill(y.row(i), y.row(i) + y.cols, S(0)); });
}

// y = x
template <class S>
void copy(device<S>& on, std::type_identity_t<view<const S>> x, view<S> y) {
  expect_alike("copy", "x", x, y);
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols,
           [&](position i) { std::copy(x.row(i), x.row(i) + y.cols, y.row(i)); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void sum_row(const S* a, const S* b, position d, S* y) {
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(a + j, n) + load(b + j, n)); });
}

// y = x1 + x2; y may be either.
template <class S>
void sum(device<S>& on, std::type_identity_t<view<const S>> x1,
         std::type_identity_t<view<const S>> x2, view<S> y) {
  expect_alike("sum", "x1", x1, y);
  expect_alike("sum", "x2", x2, y);
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols,
           [&](position i) { sum_row(x1.row(i), x2.row(i), y.cols, y.row(i)); });
}

// y += x
template <class S>
void add(device<S>& on, std::type_identity_t<view<const S>> x, view<S> y) {
  expect_alike("add", "x", x, y);
  sum(on, y, x, y);
}

template <class S>
[[gnu::noinline, gnu::flatten]] void scale_row(const S* x, S factor, position d, S* y) {
  along<S>(d, [&](position j, auto n) { store(y + j, n, load(x + j, n) * factor); });
}

// y = factor y
template <class S>
void scale(device<S>& on, double factor, view<S> y) {
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols,
           [&](position i) { scale_row<S>(y.row(i), S(factor), y.cols, y.row(i)); });
}

// y += b in every row; b (1, d).
template <class S>
void add_bias(device<S>& on, std::type_identity_t<view<const S>> b, view<S> y) {
  expect_shape("add_bias", "b", b, {"one", 1}, {"columns", y.cols});
  if (on.counts_only()) return;
  for_rows(on, y.rows, y.cols, [&](position i) { sum_row<S>(y.row(i), b.data, y.cols, y.row(i)); });
}

// db += the sum of dy's rows, last grain first; db (1, d).
template <class S>
void add_column_sums(device<S>& on, std::type_identity_t<view<const S>> dy, view<S> db,
                     std::span<const position> grains) {
  expect_shape("add_column_sums", "db", db, {"one", 1}, {"columns", dy.cols});
  expect_grains("add_column_sums", grains, dy.rows);
  if (on.counts_only()) return;
  add_row_sums(on, grains, dy.cols, db.data,
               [&](position i, position j, auto n) { return load(dy.row(i) + j, n); });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
