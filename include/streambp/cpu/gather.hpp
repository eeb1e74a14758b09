// Rows of a table by token: embedding and its gradient.
#pragma once

#include <cstdint>
#include <span>

#include "../primitives/gather.hpp"
#include "elementwise.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
void gather(workers<S>& on, std::span<const std::int32_t> tokens, given<S> table, double scale,
            view<S> y) {
  for_rows(on, y.rows, y.cols,
           [&](position i) { scale_row<S>(table.row(tokens[i]), S(scale), y.cols, y.row(i)); });
}

template <class S>
[[gnu::noinline, gnu::flatten]] void add_scaled_row(const S* x, S factor, position d, S* y) {
  along<S>(
      d, [&](position j, auto n) { store(y + j, n, fma(load(x + j, n), factor, load(y + j, n))); });
}

template <class S>
void scatter_add(workers<S>& on, std::span<const std::int32_t> tokens, given<S> dy, double scale,
                 view<S> dtable) {
  for_column_ranges(on, dy.cols, [&](position first, position count) {
    for (position i = dy.rows; i-- > 0;)
      add_scaled_row<S>(dy.row(i) + first, S(scale), count, dtable.row(tokens[i]) + first);
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
