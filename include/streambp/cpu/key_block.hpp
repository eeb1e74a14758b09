// The key blocks that a query tile visits, and the columns of a block that a row sees.
#pragma once

#include <algorithm>

#include "../core/view.hpp"
#include "../primitives/attention_shape.hpp"
#include "query_tile.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Where blocks begin and how many keys they have is a function of the tile's place alone, never of
// the rows that exist: so rows that come later cannot change the bits of earlier ones.
struct key_block {
  position place = 0;  // of the first key among the keys that the segment sees
  position keys = 0;   // columns of the products, a multiple of 8
  row_range memory;    // the rows that exist, at most `keys`

  constexpr bool ragged() const { return memory.rows() < keys; }
};

// Calls f(key_block) for each block that some row of the tile's grid may see, in order of position.
template <class Visit>
void key_blocks(const attention_shape& shape, const query_tile& tile, const Visit& visit) {
  const position least = shape.window > 0 ? tile.place() - shape.window + 1 : 0;
  position place = 0;
  for (const row_range& seen : tile.of.seen) {
    const bool own = &seen == &tile.of.seen.back();
    const position begin = std::max(position(0), least - place) / shape.tile * shape.tile;
    const position end =
        own && !shape.sees_all ? tile.start + shape.tile : round_up(seen.rows(), 8);
    for (position b = begin; b < end; b += shape.block_keys()) {
      const position keys = std::min(shape.block_keys(), end - b);
      const auto row = [&](position i) { return seen.first + std::min(i, seen.rows()); };
      visit(key_block{place + b, keys, {row(b), row(b + keys)}});
    }
    place += seen.rows();
  }
}

// Columns of the block that the row at `place` sees.
constexpr row_range visible(const attention_shape& shape, const key_block& block, position place) {
  const position first = shape.window > 0 ? place - shape.window + 1 : 0;
  const position last = shape.sees_all ? block.memory.rows() : place + 1 - block.place;
  const position end = std::clamp(last, position(0), block.memory.rows());
  return {std::clamp(first - block.place, position(0), end), end};
}

// Keys that the row at `place` of a tile sees in all blocks.
constexpr position visible_keys(const attention_shape& shape, const piece& of, position place) {
  position all = place + 1;
  if (shape.sees_all) {
    all = 0;
    for (const row_range& seen : of.seen) all += seen.rows();
  }
  return shape.window > 0 ? all - std::clamp(place - shape.window + 1, position(0), all) : all;
}

// The block's rows of one head. Rows that do not exist are zeros in `scratch`, never read.
template <class S>
view<const S> block_rows(const key_block& block, view<const S> head, view<S> scratch) {
  if (!block.ragged()) return head.rows_in(block.memory);
  for (position i = 0; i < block.keys; ++i)
    if (i < block.memory.rows())
      std::copy_n(head.row(block.memory.first + i), head.cols, scratch.row(i));
    else
      std::fill_n(scratch.row(i), head.cols, S(0));
  return scratch.middle_rows(0, block.keys);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
