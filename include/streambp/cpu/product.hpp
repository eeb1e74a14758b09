// The products of a linear layer: forward, and both halves of its backward.
#pragma once

#include <algorithm>
#include <span>

#include "../primitives/product.hpp"
#include "block_product.hpp"
#include "device.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

namespace kernel {

// The share of a (rows, cols) result that one task computes. Where the cuts are is a matter of
// speed: they fall on multiples of blocking's height and panel, which leave the bits alone. Halving
// the longer side packs the least twice.
template <class S>
struct share {
  using sizes = blocking<S>;
  position rows, cols;  // of the result
  position height = std::max(round_up(rows, sizes::height), sizes::height);
  position width = std::max(round_up(cols, sizes::panel), sizes::panel);

  position down() const { return ceil_div(rows, height); }
  position tasks() const { return down() * ceil_div(cols, width); }

  share(position rows, position cols, int threads) : rows(rows), cols(cols) {
    const auto halve = [](position& side, position step) {
      side = round_up(ceil_div(side, 2), step);
    };
    while (threads > 1 && tasks() > 0 &&
           (tasks() < threads || (tasks() < 4 * threads && height * width > 1 << 18))) {
      if (width >= height && width > sizes::panel)
        halve(width, sizes::panel);
      else if (height > sizes::height)
        halve(height, sizes::height);
      else
        break;
    }
  }

  row_range rows_of(position task) const {
    const position first = task % down() * height;
    return {first, std::min(first + height, rows)};
  }
  row_range cols_of(position task) const {
    const position first = task / down() * width;
    return {first, std::min(first + width, cols)};
  }
};

template <class S>
view<S> cols_in(view<S> x, row_range r) {
  return x.middle_cols(r.first, r.rows());
}

}  // namespace kernel

template <class S>
void project(workers<S>& on, given<S> x, given<S> w, view<S> y, write how = write::assign) {
  const kernel::share<S> share(y.rows, y.cols, on.threads());
  on.parallel(share.tasks(), [&](position task, int thread) {
    const row_range i = share.rows_of(task), j = share.cols_of(task);
    times_transposed(on.packing(thread), x.rows_in(i), w.rows_in(j),
                     kernel::cols_in(y.rows_in(i), j), how);
  });
}

template <class S>
void project_back(workers<S>& on, given<S> dy, given<S> w, view<S> dx, write how = write::assign) {
  const kernel::share<S> share(dx.rows, dx.cols, on.threads());
  on.parallel(share.tasks(), [&](position task, int thread) {
    const row_range i = share.rows_of(task), j = share.cols_of(task);
    times(on.packing(thread), dy.rows_in(i), kernel::cols_in(w, j),
          kernel::cols_in(dx.rows_in(i), j), how);
  });
}

template <class S>
void add_weight_gradient(workers<S>& on, given<S> dy, given<S> x, view<S> dw,
                         std::span<const position> grains) {
  const kernel::share<S> share(dw.rows, dw.cols, on.threads());
  on.parallel(share.tasks(), [&](position task, int thread) {
    const row_range i = share.rows_of(task), j = share.cols_of(task);
    for (std::size_t g = grains.size(); g-- > 1;) {
      const row_range grain{grains[g - 1] - grains[0], grains[g] - grains[0]};
      transposed_times(on.packing(thread), kernel::cols_in(dy.rows_in(grain), i),
                       kernel::cols_in(x.rows_in(grain), j), kernel::cols_in(dw.rows_in(i), j),
                       write::add);
    }
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
