// Entry-wise expressions on the CPU: the primitives that a derived backward is made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "../primitives/expression.hpp"
#include "expression_row.hpp"
#include "mean_square.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

namespace entries {

template <class S>
[[gnu::noinline, gnu::flatten]] void add_up(const S* x, position n, lanes<S>& total) {
  along<S>(n, [&](position k, auto some) { total = total + load(x + k, some); });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void find_largest(const S* x, position n, lanes<S>& top) {
  constexpr S least = -std::numeric_limits<S>::infinity();
  along<S>(n, [&](position k, auto some) { top = max(top, load(x + k, some, least)); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void add_up_squares(const S* x, position n, lanes<S>& total) {
  alignas(64) S square[block<S>];
  unary_values<unary::square>(x, n, square);
  add_up(square, n, total);
}

// squares * factor + epsilon, each operation rounded.
template <class S>
[[gnu::noinline, gnu::flatten]] S mean_square(S squares, S factor, S epsilon) {
  using one = S[lanes<S>::count];
  alignas(64) one value = {squares}, by = {factor}, more = {epsilon};
  binary_values<operation::multiply>(value, by, 1, value);
  binary_values<operation::add>(value, more, 1, value);
  return value[0];
}
template <class S>
[[gnu::noinline, gnu::flatten]] S root(S x) {
  alignas(64) S value[lanes<S>::count] = {x};
  unary_values<unary::sqrt>(value, 1, value);
  return value[0];
}
// In units of the largest entry.
template <class S>
[[gnu::noinline, gnu::cold]] S rms_in_units(expression_row<S>& w, position cols, S epsilon) {
  constexpr S infinite = std::numeric_limits<S>::infinity();
  const auto for_entries = [&](const auto& f) {
    w.for_blocks(false, [&](position, position n) { std::for_each_n(w.result(), n, f); });
  };
  S m = std::sqrt(epsilon), squares = 0;
  for_entries([&](S x) { m = std::max(m, std::abs(x)); });
  if (m == 0) return infinite;
  for_entries([&](S x) { squares += (x / m) * (x / m); });
  const S rms = m * std::sqrt(squares / S(cols) + epsilon / m / m);
  return std::isinf(1 / rms) ? infinite : rms;
}

// seed = g 2 x, of n entries and what fills up their lanes.
template <class S>
[[gnu::noinline, gnu::flatten]] void squares_back(const S* x, position n, S g, S* seed) {
  for_lanes<S>(n, [&](position k) {
    const lanes<S> at = load<S>(x + k);
    store(seed + k, whole<S>{}, carried(lanes<S>(g), at + at));
  });
}
// seed = g x / y, which is 0 where y is infinite.
template <class S>
[[gnu::noinline, gnu::flatten]] void rms_back(const S* x, position n, S g, S y, S* seed) {
  for_lanes<S>(n, [&](position k) {
    store(seed + k, whole<S>{}, carried(lanes<S>(g), load<S>(x + k) / lanes<S>(y)));
  });
}

// Calls f(expression at the row, row) for the rows.
template <class S, class F>
void for_rows_of(workers<S>& on, std::span<const expression_term<S>> terms, position cols,
                 row_range rows, const F& f) {
  for_row_ranges(on, rows.rows(), cols * position(terms.size()),
                 [&](position first, position last) {
                   expression_row<S> w(terms, cols);
                   for (position row = rows.first + first; row < rows.first + last; ++row) {
                     w.begin_row(row);
                     f(w, row);
                   }
                 });
}

}  // namespace entries

template <class S>
void evaluate(workers<S>& on, std::span<const autodiff::expression_term<S>> terms, view<S> y,
              row_range rows) {
  entries::for_rows_of(on, terms, y.cols, rows, [&](auto& w, position row) {
    w.for_blocks(false,
                 [&](position j, position n) { std::copy_n(w.result(), n, y.row(row) + j); });
  });
}

template <class S>
void evaluate_sum(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                  position cols, view<S> y, row_range rows) {
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    lanes<S> total = 0;
    w.for_blocks(false, [&](position, position n) { entries::add_up(w.result(), n, total); });
    y(row, 0) = sum(total);
  });
}
template <class S>
void evaluate_max(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                  position cols, view<S> y, row_range rows) {
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    lanes<S> top = -std::numeric_limits<S>::infinity();
    w.for_blocks(false, [&](position, position n) { entries::find_largest(w.result(), n, top); });
    y(row, 0) = largest(top);
  });
}

template <class S>
void evaluate_rms(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                  position cols, double epsilon, view<S> y, row_range rows) {
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    lanes<S> total = 0;
    w.for_blocks(false,
                 [&](position, position n) { entries::add_up_squares(w.result(), n, total); });
    const S mean = entries::mean_square(sum(total), S(1 / double(cols)), S(epsilon));
    y(row, 0) = held(mean) ? entries::root(mean) : entries::rms_in_units(w, cols, S(epsilon));
  });
}

template <class S>
void differentiate(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                   position cols, given<S> dy, row_range rows) {
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    w.for_blocks(true, [&](position j, position n) {
      S* const seed = w.seed();
      if (dy.cols == 1)
        std::fill_n(seed, n, dy(row, 0));
      else
        std::copy_n(dy.row(row) + j, n, seed);
      std::fill(seed + n, seed + round_up(n, lanes<S>::count), S(0));
      w.pull(j, n);
    });
    w.end_row();
  });
}

template <class S>
void differentiate_max(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                       position cols, given<S> y, given<S> dy, row_range rows) {
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    bool found = false;
    w.for_blocks(true, [&](position j, position n) {
      S* const seed = w.seed();
      const position first =
          found ? n : std::find(w.result(), w.result() + n, y(row, 0)) - w.result();
      std::fill(seed, seed + round_up(n, lanes<S>::count), S(0));
      if (first < n) seed[first] = dy(row, 0);
      found = found || first < n;
      w.pull(j, n);
    });
    w.end_row();
  });
}

// Of each entry: dy x / (cols y). In this order only where the slope of the mean of squares,
// dy / (2 y cols), is one that S does not hold.
template <class S>
void differentiate_rms(workers<S>& on, std::span<const autodiff::expression_term<S>> terms,
                       position cols, given<S> y, given<S> dy, row_range rows) {
  using autodiff::carried;
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    const S rms = y(row, 0), square = rms * rms, share = S(1 / double(cols));
    const bool by_squares = held(square) && held(1 / square / S(cols));
    const S slope = carried(by_squares ? carried(dy(row, 0), S(0.5) / rms) : dy(row, 0), share);
    w.for_blocks(true, [&](position j, position n) {
      S* const seed = w.seed();
      if (by_squares)
        entries::squares_back(w.result(), n, slope, seed);
      else
        entries::rms_back(w.result(), n, slope, rms, seed);
      std::fill(seed + n, seed + round_up(n, lanes<S>::count), S(0));
      w.pull(j, n);
    });
    w.end_row();
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
