// Attention's memory, some rows at a time: a walk over the rows that a chunk reads.
#pragma once

#include <algorithm>

#include "../core/view.hpp"
#include "attention_shape.hpp"

namespace streambp {

// Memory rows whose turn it is, in a walk whose blocks ascend and together hold all rows that the
// pieces read. Row m of the memory is row m - rows.first of k and v, which go on behind the block:
// to `lent_rows`.
template <class S>
struct memory_block {
  row_range rows;
  view<const S> k, v;
  bool first = true;  // of the walk
};

// A key block belongs to the memory block that holds its first row, and may end behind it.
constexpr row_range lent_rows(const attention_shape& shape, row_range block, position memory) {
  return {block.first, std::min(memory, block.last + shape.block_keys() - 1)};
}

namespace detail {

// Calls f(row_range) for each stretch of memory rows, not empty, that the piece's key blocks hold.
template <class F>
void rows_read(const attention_shape& shape, const piece& p, const F& f) {
  position place = 0;
  for (const row_range& seen : p.seen) {
    const position ends = !shape.sees_all && &seen == &p.seen.back()
                              ? std::min(seen.last, seen.first + p.start + p.rows)
                              : seen.last;
    const row_range rows{seen.first + first_key(shape, p.before + p.start, place), ends};
    if (rows.rows() > 0) f(rows);
    place += seen.rows();
  }
}

}  // namespace detail

// Calls f(rows, first of the walk) for blocks of at most `at_a_time` rows (0: of all that there
// are), ascending. Blocks of which no piece reads a row are left out; if none reads any, there is
// one block without rows.
template <class F>
void walk_memory(const attention_shape& shape, const piece_list& pieces, position memory,
                 position at_a_time, const F& f) {
  if (at_a_time <= 0 || at_a_time >= memory) return f(row_range{0, memory}, true);
  position end = 0;
  for (const piece p : pieces)
    detail::rows_read(shape, p, [&](row_range r) { end = std::max(end, r.last); });
  row_range block;
  for (bool first = true;; first = false) {
    position next = end;
    for (const piece p : pieces)
      detail::rows_read(shape, p, [&](row_range r) {
        if (r.last > block.last) next = std::min(next, std::max(r.first, block.last));
      });
    if (next == end && !first) return;
    block = {next, std::min(next + at_a_time, end)};
    f(block, first);
  }
}

}  // namespace streambp
