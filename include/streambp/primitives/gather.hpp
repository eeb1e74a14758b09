// Rows of a table by token: embedding and its gradient.
#pragma once

#include <cstdint>
#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// y_i = scale table_{tokens_i}; table (vocabulary, d). Requires tokens inside the table.
template <device D>
void gather(D& on, std::span<const std::int32_t> tokens, given<D> table, double scale,
            written<D> y) {
  if (!on.counts_only())  // the planner knows no token
    expect_shape("gather", "y", y, {"tokens", position(tokens.size())}, {"columns", table.cols});
  if (const auto with = on.enter("gather")) gather(*with, tokens, table, scale, y);
}

// dtable_{tokens_i} += scale dy_i, last row first.
template <device D>
void scatter_add(D& on, std::span<const std::int32_t> tokens, given<D> dy, double scale,
                 written<D> dtable) {
  if (!on.counts_only())
    expect_shape("scatter_add", "dy", dy, {"tokens", position(tokens.size())},
                 {"columns", dtable.cols});
  if (const auto with = on.enter("scatter_add")) scatter_add(*with, tokens, dy, scale, dtable);
}

}  // namespace streambp::primitives
