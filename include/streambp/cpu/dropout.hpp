// Dropout whose draws are a function of place, so that a backward or a recomputation finds them
// again.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "../primitives/dropout.hpp"
#include "rows.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <bool adds, class S>
[[gnu::noinline, gnu::flatten]] void dropout_row(std::uint64_t row, double rate, const S* x,
                                                 position d, S* y) {
  const std::uint64_t least = std::uint64_t(std::ceil(rate * 0x1p53));
  const S factor = S(1 / (1 - rate));
  along<S>(d, [&](position j, auto n) {
    alignas(64) S kept[lanes<S>::count];
    for (position l = 0; l < lanes<S>::count; ++l)
      kept[l] = (random_bits(row, j + l) >> 11) >= least ? S(1) : S(0);
    const lanes<S> y_j = select(lanes<S>(0) < load<S>(kept), load(x + j, n) * factor, 0);
    if constexpr (adds)
      store(y + j, n, load<S>(y + j, n) + y_j);
    else
      store(y + j, n, y_j);
  });
}

template <bool adds, class S>
void dropout_rows(workers<S>& on, const dropout_draw& draw, const piece_list& pieces,
                  view<const S> x, view<S> y) {
  for_rows(on, pieces, x.cols, [&](const piece& p, position row) {
    random_key key = draw.key;
    key.sample = draw.samples.empty() ? std::uint64_t(p.segment) : draw.samples[p.segment];
    dropout_row<adds>(random_row(key, p.start + (row - p.row)), draw.rate, x.row(row), x.cols,
                      y.row(row));
  });
}

template <class S>
void dropout(workers<S>& on, const dropout_draw& draw, const piece_list& pieces, given<S> x,
             view<S> y) {
  dropout_rows<false>(on, draw, pieces, x, y);
}

template <class S>
void add_dropout(workers<S>& on, const dropout_draw& draw, const piece_list& pieces, given<S> x,
                 view<S> y) {
  dropout_rows<true>(on, draw, pieces, x, y);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
