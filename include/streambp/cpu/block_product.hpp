// Products of views on one thread, in packing buffers of the caller; the only header that forms
// Eigen products.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "../core/view.hpp"
#include "../primitives/write.hpp"
#include "blocking.hpp"
#include "panel_kernel.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

namespace kernel {

namespace eigen = Eigen::internal;

// Eigen's functions on these types bear the instruction set in their names.
template <class S, int Order>
struct operand : eigen::const_blas_data_mapper<S, position, Order> {
  using eigen::const_blas_data_mapper<S, position, Order>::const_blas_data_mapper;
};
template <class S>
struct result : eigen::blas_data_mapper<S, position, Eigen::ColMajor> {
  using eigen::blas_data_mapper<S, position, Eigen::ColMajor>::blas_data_mapper;
};

template <class S>
void assign_zero(view<S> y) {
  for (position i = 0; i < y.rows; ++i) std::fill_n(y.row(i), y.cols, S(0));
}

template <class S>
void assign(view<const S> x, view<S> y) {
  for (position i = 0; i < y.rows; ++i) std::copy_n(x.row(i), y.cols, y.row(i));
}

// A matrix and the way it is stored: by rows (its own, not those of the product) or across.
template <class S, bool Across>
struct factor {
  view<const S> of;
  // Entry i of the outer dimension (a row of y for x, a column of y for w), entry k of the depth.
  const S* at(position i, position k) const { return Across ? &of(k, i) : &of(i, k); }
  position depth() const { return Across ? of.rows : of.cols; }
};

// y (rows, cols) (+)= x w, depth block by depth block. Eigen's kernel sees yᵀ = wᵀ xᵀ,
// column-major, so that its packets run along rows of y, whose bits then do not depend on the row's
// place: rows go in fours, the last ones padded.
template <class S, bool AcrossX, bool AcrossW>
class block_product {
  using sizes = blocking<S>;
  using traits = eigen::gebp_traits<S, S>;
  static constexpr int w_order = AcrossW ? Eigen::ColMajor : Eigen::RowMajor;
  static constexpr int x_order = AcrossX ? Eigen::RowMajor : Eigen::ColMajor;
  using w_operand = operand<S, w_order>;
  using x_operand = operand<S, x_order>;

  static_assert(sizes::panel % traits::mr == 0 && sizes::columns % sizes::panel == 0);
  static_assert(sizes::height % traits::nr == 0 && sizes::rows % sizes::height == 0);

  position columns_;
  S* w_;            // (columns, depth) as the kernel wants them
  S* x_;            // (rows, depth)
  view<S> last_x_;  // (height, depth)
  view<S> last_y_;  // (height, columns)

 public:
  explicit block_product(packing_space<S> packing)
      : columns_(packing.columns),
        w_(packing.data),
        x_(w_ + columns_ * sizes::depth),
        last_x_(x_ + sizes::rows * sizes::depth, sizes::height, sizes::depth),
        last_y_(last_x_.data + sizes::height * sizes::depth, sizes::height, columns_) {}

  [[gnu::noinline]] void run(factor<S, AcrossX> x, factor<S, AcrossW> w, view<S> y, write how) {
    const position depth = x.depth(), whole = y.rows / sizes::height * sizes::height;
    if (depth == 0 && how == write::assign) assign_zero(y);
    for (position j = 0; j < y.cols; j += columns_) {
      const view<S> tile = y.middle_cols(j, std::min(columns_, y.cols - j));
      for (position k = 0; k < depth; k += sizes::depth) {
        const position d = std::min(sizes::depth, depth - k);
        const write now = k == 0 ? how : write::add;
        pack_w(w.at(j, k), w.of.stride, d, tile.cols);
        for (position i = 0; i < whole; i += sizes::rows) {
          const position m = std::min(sizes::rows, whole - i);
          add_packed(x.at(i, k), x.of.stride, d, tile.middle_rows(i, m), now);
        }
        if (whole < y.rows) last_rows(x, whole, k, d, tile.middle_rows(whole, y.rows - whole), now);
      }
    }
  }

 private:
  void pack_w(const S* w, position stride, position depth, position cols) {
    eigen::gemm_pack_lhs<S, position, w_operand, traits::mr, traits::LhsProgress,
                         typename traits::LhsPacket4Packing, w_order>{}(w_, w_operand(w, stride),
                                                                        depth, cols);
  }

  void add_packed(const S* x, position stride, position depth, view<S> y, write how) {
    eigen::gemm_pack_rhs<S, position, x_operand, traits::nr, x_order>{}(x_, x_operand(x, stride),
                                                                        depth, y.rows);
    // Eigen's kernel takes the columns that are left: its panels of three packets are ours.
    position done = 0;
    if constexpr (traits::mr == panel<S>::cols && traits::nr == panel<S>::rows) {
      panel<S>::multiply_all(x_, w_, depth, y, how);
      done = y.cols / panel<S>::cols * panel<S>::cols;
    }
    const view<S> rest = y.middle_cols(done, y.cols - done);
    if (rest.cols == 0) return;
    if (how == write::assign) assign_zero(rest);
    eigen::gebp_kernel<S, S, position, result<S>, traits::mr, traits::nr, false, false>{}(
        result<S>(rest.data, y.stride), w_ + done * depth, x_, rest.cols, depth, y.rows, S(1));
  }

  void last_rows(factor<S, AcrossX> x, position row, position k, position depth, view<S> y,
                 write how) {
    assign_zero(last_x_);
    for (position i = 0; i < y.rows; ++i)
      for (position q = 0; q < depth; ++q)
        (AcrossX ? last_x_.data[q * sizes::height + i] : last_x_(i, q)) = *x.at(row + i, k + q);
    const view<S> padded = last_y_.middle_cols(0, y.cols);
    if (how == write::add) {
      assign_zero(padded);
      assign<S>(y, padded.middle_rows(0, y.rows));
    }
    add_packed(last_x_.data, AcrossX ? sizes::height : last_x_.stride, depth, padded, how);
    assign<S>(padded.middle_rows(0, y.rows), y);
  }
};

}  // namespace kernel

template <class S>
using own_packing = std::type_identity_t<packing_space<S>>;

// For use inside a task: `packing` is the thread's own, on.packing(thread). A row of y depends on
// that row of x (column, in the last) alone: not on how many rows there are, nor on its place.

// y (+)= x wᵀ: x (rows, depth), w (cols, depth), y (rows, cols).
template <class S>
void times_transposed(own_packing<S> packing, std::type_identity_t<view<const S>> x,
                      std::type_identity_t<view<const S>> w, view<S> y, write how) {
  kernel::block_product<S, false, false>(packing).run({x}, {w}, y, how);
}

// y (+)= x w: x (rows, depth), w (depth, cols), y (rows, cols).
template <class S>
void times(own_packing<S> packing, std::type_identity_t<view<const S>> x,
           std::type_identity_t<view<const S>> w, view<S> y, write how) {
  kernel::block_product<S, false, true>(packing).run({x}, {w}, y, how);
}

// y (+)= xᵀ w: x (depth, rows), w (depth, cols), y (rows, cols).
template <class S>
void transposed_times(own_packing<S> packing, std::type_identity_t<view<const S>> x,
                      std::type_identity_t<view<const S>> w, view<S> y, write how) {
  kernel::block_product<S, true, true>(packing).run({x}, {w}, y, how);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
