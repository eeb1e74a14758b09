// What passes between rows and the host: copies, single entries, whether all are finite.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// The number, row by row, of the first entry that is not finite; rows * cols if all are.
template <device D>
position first_not_finite(D& on, given<D> x) {
  if (const auto with = on.enter("first_not_finite")) return first_not_finite(*with, x);
  return x.rows * x.cols;
}

// to = x, or y = from; row by row without gaps.
template <device D>
void read_rows(D& on, given<D> x, std::span<scalar_of<D>> to) {
  expect_count("read_rows", "to", to.size(), {"rows x columns", x.rows * x.cols});
  if (const auto with = on.enter("read_rows")) read_rows(*with, x, to);
}
template <device D>
void write_rows(D& on, std::span<const scalar_of<D>> from, written<D> y) {
  expect_count("write_rows", "from", from.size(), {"rows x columns", y.rows * y.cols});
  if (const auto with = on.enter("write_rows")) write_rows(*with, from, y);
}

// Entries as the host reads them: in place where it reaches them, otherwise a copy.
template <device D>
class host_copy {
 public:
  host_copy(D& on, std::span<const scalar_of<D>> entries) : seen_(entries) {
    if constexpr (!D::is_host) {
      copy_.resize(entries.size());
      read_rows(on, {entries.data(), 1, position(entries.size())}, copy_);
      seen_ = copy_;
    }
  }
  host_copy(const host_copy&) = delete;
  host_copy& operator=(const host_copy&) = delete;

  std::span<const scalar_of<D>> entries() const { return seen_; }

 private:
  std::vector<scalar_of<D>> copy_;
  std::span<const scalar_of<D>> seen_;
};

// x(i, j)
template <device D>
scalar_of<D> entry(D& on, given<D> x, position i, position j) {
  if (const auto with = on.enter("entry")) return entry(*with, x, i, j);
  return 0;
}

// The first entry that is not finite, if there is one.
template <class Scalar>
struct found_entry {
  position row, column;
  Scalar value;
};
template <device D>
std::optional<found_entry<scalar_of<D>>> find_not_finite(D& on, given<D> x) {
  const position i = first_not_finite(on, x);
  if (i == x.rows * x.cols) return std::nullopt;
  return found_entry<scalar_of<D>>{i / x.cols, i % x.cols, entry(on, x, i / x.cols, i % x.cols)};
}

}  // namespace streambp::primitives
