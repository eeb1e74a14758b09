// What passes between rows and the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../primitives/look.hpp"
#include "device.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
position first_not_finite(workers<S>&, view<const S> x) {
  if (x.stride == x.cols) x = {x.data, 1, x.rows * x.cols};
  constexpr position block = 4096;
  for (position t = 0; t < x.rows; ++t)
    for (position j = 0; j < x.cols; j += block) {
      const S* const at = x.row(t) + j;
      const position n = std::min(block, x.cols - j);
      bool all = true;  // without a branch an entry
      for (position i = 0; i < n; ++i) all &= std::abs(at[i]) <= std::numeric_limits<S>::max();
      for (position i = 0; !all && i < n; ++i)
        if (!std::isfinite(at[i])) return t * x.cols + j + i;
    }
  return x.rows * x.cols;
}

template <class S>
void read_rows(workers<S>&, view<const S> x, std::span<S> to) {
  for (position i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, to.data() + i * x.cols);
}
template <class S>
void write_rows(workers<S>&, std::span<const S> from, view<S> y) {
  for (position i = 0; i < y.rows; ++i) std::copy_n(from.data() + i * y.cols, y.cols, y.row(i));
}

template <class S>
S entry(workers<S>&, view<const S> x, position i, position j) {
  return x(i, j);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
