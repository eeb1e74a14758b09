// Entry-wise expressions on the CPU: the primitives that a derived backward is made of.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "../primitives/expression.hpp"
#include "expression_row.hpp"
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

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
