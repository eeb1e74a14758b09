// Rows of logits: what a loss needs of them, and their gradient from what the loss gives back.
#pragma once

#include <cstdint>
#include <span>

#include "device.hpp"
#include "expect_shape.hpp"
#include "row_terms.hpp"

namespace streambp::primitives {

namespace detail {

// `first`: where the targets of each row begin, and where the last ones end.
inline void expect_targets(const char* primitive, position rows,
                           std::span<const std::int32_t> first,
                           std::span<const std::int32_t> targets, std::size_t statistics) {
  expect_count(primitive, "first", first.size(), {"rows + 1", rows + 1});
  expect_count(primitive, "targets", targets.size(), {"first.back()", first.back()});
  expect_count(primitive, "statistics", statistics, {"targets", first.back()});
}

}  // namespace detail

// Turns the rows of raw logits (rows, vocabulary) that have targets into z in place, and gives the
// statistics of each target. Targets of row i are those from first[i] to first[i + 1]; a row
// without any is not touched.
template <device D>
void row_statistics_of(D& on, logit_transform transform, written<D> logits,
                       std::span<const std::int32_t> first, std::span<const std::int32_t> targets,
                       bool want_mean, std::span<row_statistics> out) {
  detail::expect_targets("row_statistics_of", logits.rows, first, targets, out.size());
  if (const auto with = on.enter("row_statistics_of"))
    row_statistics_of(*with, transform, logits, first, targets, want_mean, out);
}

// With g the slopes of a row's targets, summed: draw_j = (g.lse exp(z_j - base - lse) + g.mean /
// vocabulary + Σ [j = target] g.target) scale (1 - (z_j / c)²), in place of z. Rows without targets
// become 0.
template <device D>
void gradient_of_rows(D& on, logit_transform transform, written<D> logits,
                      std::span<const std::int32_t> first, std::span<const std::int32_t> targets,
                      std::span<const row_statistics> statistics,
                      std::span<const row_gradient> slopes) {
  detail::expect_targets("gradient_of_rows", logits.rows, first, targets, statistics.size());
  expect_count("gradient_of_rows", "slopes", slopes.size(), {"targets", first.back()});
  if (const auto with = on.enter("gradient_of_rows"))
    gradient_of_rows(*with, transform, logits, first, targets, statistics, slopes);
}

}  // namespace streambp::primitives
