// Matrices for tests: rows at odd addresses with a stride, poison around them, and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <streambp/core/view.hpp>
#include <vector>

namespace streambp {

inline double wave(position i, position j, int seed) {
  return std::sin(double((i * 7919 + j * 613 + seed * 104729) % 10007));
}

// (rows, cols); `skew` moves the rows' addresses and changes nothing else.
template <class S>
class guarded {
 public:
  static constexpr S poison = S(-1234.5);

  guarded(position rows, position cols, position skew = 1)
      : store_(std::size_t(rows * (cols + 3 + skew) + skew + 8), poison),
        all_(store_.data() + skew, rows, cols, cols + 3 + skew) {}
  guarded(position rows, position cols, int seed, double scale, double shift, position skew = 1)
      : guarded(rows, cols, skew) {
    for (position i = 0; i < rows; ++i)
      for (position j = 0; j < cols; ++j) all_(i, j) = S(shift + scale * wave(i, j, seed));
  }
  guarded(const guarded& other)
      : store_(other.store_),
        all_(store_.data() + (other.all_.data - other.store_.data()), other.all_.rows,
             other.all_.cols, other.all_.stride) {}

  operator view<S>() { return all_; }
  operator view<const S>() const { return all_; }
  const view<S>& operator*() const { return all_; }
  S& operator()(position i, position j) const { return all_(i, j); }

  // Nothing was written outside the rows.
  bool intact() const {
    std::vector<bool> inside(store_.size());
    for (position i = 0; i < all_.rows; ++i)
      for (position j = 0; j < all_.cols; ++j)
        inside[std::size_t(&all_(i, j) - store_.data())] = true;
    for (std::size_t k = 0; k < store_.size(); ++k)
      if (!inside[k] && store_[k] != poison) return false;
    return true;
  }

 private:
  std::vector<S> store_;
  view<S> all_;
};

template <class S>
bool same_bits(view<const S> a, view<const S> b) {
  for (position i = 0; i < a.rows; ++i)
    if (std::memcmp(a.row(i), b.row(i), std::size_t(a.cols) * sizeof(S)) != 0) return false;
  return a.rows == b.rows && a.cols == b.cols;
}
template <class S>
bool same_bits(const guarded<S>& a, const guarded<S>& b) {
  return same_bits<S>(*a, *b);
}

// The largest difference from expected(i, j), relative to the largest entry expected.
template <class S, class Expected>
double error_of(view<S> a, const Expected& expected) {
  double difference = 0, most = 1e-300;
  for (position i = 0; i < a.rows; ++i)
    for (position j = 0; j < a.cols; ++j) {
      const double e = double(expected(i, j));
      const double off = std::abs(double(a(i, j)) - e);
      difference = off <= difference ? difference : off;  // NaN counts
      most = std::max(most, std::abs(e));
    }
  return difference / most;
}

// A few roundings of S.
template <class S>
constexpr double tight = sizeof(S) == 4 ? 2e-6 : 1e-14;

// Slope of loss() in x by central differences.
template <class Loss>
double slope(double& x, const Loss& loss, double step = 1e-5) {
  const double at = x;
  x = at + step;
  const double above = loss();
  x = at - step;
  const double below = loss();
  x = at;
  return (above - below) / (2 * step);
}

constexpr position widths[] = {1, 3, 15, 16, 17, 50, 512};

}  // namespace streambp
