#include <streambp/cpu/panel_kernel.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

// x y + sum as the instruction set rounds it.
template <class S>
S multiply_add(S x, S y, S sum) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
  return std::fma(x, y, sum);
#else
  return x * y + sum;
#endif
}

// x (rows, depth) in fours and w (depth, cols) in panels, as the kernel wants them; y with columns
// beside the last panel.
template <class S>
struct panels {
  using panel = kernel::panel<S>;
  static constexpr position rows = 3 * panel::rows, cols = 2 * panel::cols;

  position depth;
  std::vector<S> x, store;
  S* w;
  guarded<S> y;

  explicit panels(position depth, position skew = 1)
      : depth(depth),
        x(std::size_t(rows * depth)),
        store(std::size_t(cols * depth) + 64 / sizeof(S)),
        w(store.data() + (64 - reinterpret_cast<std::size_t>(store.data()) % 64) % 64 / sizeof(S)),
        y(rows, cols + 5, 3, 1., 0., skew) {
    for (position k = 0; k < depth; ++k) {
      for (position i = 0; i < rows; ++i) x[x_at(i, k)] = S(wave(i, k, 1));
      for (position j = 0; j < cols; ++j) w[w_at(k, j)] = S(wave(k, j, 2));
    }
  }
  panels(const panels&) = delete;

  std::size_t x_at(position i, position k) const {
    return std::size_t((i / 4 * depth + k) * 4 + i % 4);
  }
  std::size_t w_at(position k, position j) const {
    return std::size_t((j / panel::cols * depth + k) * panel::cols + j % panel::cols);
  }

  // One chain over the depth.
  S sum(position i, position j) const {
    S total = 0;
    for (position k = 0; k < depth; ++k) total = multiply_add(x[x_at(i, k)], w[w_at(k, j)], total);
    return total;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("panels: an entry is one chain of multiply-adds, added at its end", S, float,
                   double) {
  for (const position depth : {0, 1, 7, 8, 31, 257})
    for (const auto how : {streambp::write::assign, streambp::write::add}) {
      CAPTURE(depth);
      panels<S> of(depth);
      const guarded<S> before = of.y;
      kernel::panel<S>::multiply_all(of.x.data(), of.w, depth, *of.y, how);
      bool equal = true;
      for (position i = 0; i < of.rows; ++i)
        for (position j = 0; j < of.cols + 5; ++j) {
          const bool adds = how == streambp::write::add;
          equal = equal && of.y(i, j) == (j >= of.cols ? before(i, j)
                                          : adds       ? before(i, j) + of.sum(i, j)
                                                       : of.sum(i, j));
        }
      CHECK(equal);
      CHECK(of.y.intact());
    }
}

TEST_CASE_TEMPLATE("panels: one alone, at any address and stride, has the bits it has among others",
                   S, float, double) {
  using panel = kernel::panel<S>;
  panels<S> all(67), apart(67, 6);
  panel::multiply_all(all.x.data(), all.w, 67, *all.y, streambp::write::add);
  for (position j = all.cols; j > 0; j -= panel::cols)
    for (position i = 0; i < all.rows; i += panel::rows)
      panel::multiply(apart.x.data() + i * 67, apart.w + (j - panel::cols) * 67, 67,
                      &apart.y(i, j - panel::cols), (*apart.y).stride, streambp::write::add);
  CHECK(same_bits(all.y, apart.y));
  CHECK(apart.y.intact());
}

TEST_CASE_TEMPLATE("panels have the bits of Eigen's kernel, where that has panels of their size", S,
                   float, double) {
  using panel = kernel::panel<S>;
  using traits = Eigen::internal::gebp_traits<S, S>;
  if constexpr (traits::mr == panel::cols && traits::nr == panel::rows) {
    using result = Eigen::internal::blas_data_mapper<S, position, Eigen::ColMajor>;
    for (const position depth : {1, 7, 8, 31, 257}) {
      panels<S> ours(depth), eigens(depth);
      panel::multiply_all(ours.x.data(), ours.w, depth, *ours.y, streambp::write::add);
      Eigen::internal::gebp_kernel<S, S, position, result, traits::mr, traits::nr, false, false>{}(
          result((*eigens.y).data, (*eigens.y).stride), eigens.w, eigens.x.data(), eigens.cols,
          depth, eigens.rows, S(1));
      CHECK(same_bits(ours.y, eigens.y));
    }
  }
}
