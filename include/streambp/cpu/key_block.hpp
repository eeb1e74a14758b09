// The key blocks that a query tile visits, and the columns of a block that a row sees.
#pragma once

#include <algorithm>

#include "../core/view.hpp"
#include "../primitives/attention_shape.hpp"
#include "query_tile.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Where blocks begin and how many keys they have is a function of the tile's place alone, never of
// the rows that exist: so rows that come later cannot change the bits of earlier ones. Nor is it
// one of the rows that are lent at a time: what those are cannot change any.
struct key_block {
  position place = 0;  // of the first key among the keys that the segment sees
  position keys = 0;   // columns of the products, a multiple of 8
  row_range memory;    // the rows that exist, at most `keys`, counted from the first one lent
  row_range turn;      // columns of the rows whose turn it is

  constexpr bool begins() const { return memory.first >= 0; }  // with one of them
  constexpr bool ragged() const { return memory.rows() < keys; }
};

// What the turn of some memory rows means to a tile, whose blocks pass in several.
struct tile_turn {
  bool begins = false;   // its first block begins with one of the rows
  bool ends = false;     // its last block does
  bool runs = false;     // some block between them, both included, may
  bool reaches = false;  // some block may hold one of the rows
};

// Calls f(seen, place of its first row, first key, end of keys) for each range of memory that the
// tile's blocks divide: keys are counted from the range's first row.
template <class F>
constexpr void key_ranges(const attention_shape& shape, const query_tile& tile, const F& f) {
  position place = 0;
  for (const row_range& seen : tile.of.seen) {
    const bool own = &seen == &tile.of.seen.back();
    const position begin = first_key(shape, tile.place(), place);
    const position end =
        own && !shape.sees_all ? tile.start + shape.tile : round_up(seen.rows(), 8);
    if (begin < end) f(seen, place, begin, end);
    place += seen.rows();
  }
}

// A tile that sees no row has its turn at the walk's first.
constexpr tile_turn turn_of(const attention_shape& shape, const query_tile& tile, row_range turn,
                            bool walk_begins) {
  position first = -1, last = -1;  // rows that its blocks begin with
  key_ranges(shape, tile, [&](row_range seen, position, position begin, position end) {
    if (first < 0) first = seen.first + begin;
    last = seen.first + end - 1 - (end - 1 - begin) % shape.block_keys();
  });
  if (first < 0) return {walk_begins, walk_begins, walk_begins, walk_begins};
  const auto holds = [&](position row) { return turn.first <= row && row < turn.last; };
  return {holds(first), holds(last), first < turn.last && turn.first <= last,
          first < turn.last && turn.first < last + shape.block_keys()};
}

// Calls f(key_block) for each block that some row of the tile's grid may see and that holds some of
// the memory rows `turn`, in order of position. `turn.first` is the first row that is lent.
template <class Visit>
void key_blocks(const attention_shape& shape, const query_tile& tile, row_range turn,
                const Visit& visit) {
  const position step = shape.block_keys();
  key_ranges(shape, tile, [&](row_range seen, position place, position begin, position end) {
    const position ahead = std::max(position(0), turn.first - seen.first - begin) / step * step;
    const auto row = [&](position i) { return seen.first + std::min(i, seen.rows()); };
    for (position b = begin + ahead; b < end && row(b) < turn.last; b += step) {
      const position keys = std::min(step, end - b);
      const row_range memory{row(b), row(b + keys)};
      const row_range held{std::max(memory.first, turn.first), std::min(memory.last, turn.last)};
      if (held.rows() <= 0) continue;
      visit(key_block{place + b,
                      keys,
                      {memory.first - turn.first, memory.last - turn.first},
                      {held.first - memory.first, held.last - memory.first}});
    }
  });
}

// Columns of the block that the row at `place` sees.
constexpr row_range visible(const attention_shape& shape, const key_block& block, position place) {
  const position first = shape.window > 0 ? place - shape.window + 1 : 0;
  const position last = shape.sees_all ? block.memory.rows() : place + 1 - block.place;
  const position end = std::clamp(last, position(0), block.memory.rows());
  return {std::clamp(first - block.place, position(0), end), end};
}

// Those of the columns `seen` whose rows' turn it is.
constexpr row_range in_turn(const key_block& block, row_range seen) {
  const position first = std::max(seen.first, block.turn.first);
  return {first, std::max(first, std::min(seen.last, block.turn.last))};
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

// The block's rows of one head. Rows that do not exist, or are not lent, are zeros in `scratch`,
// never read.
template <class S>
view<const S> block_rows(const key_block& block, view<const S> head, view<S> scratch) {
  if (!block.ragged() && block.begins()) return head.rows_in(block.memory);
  for (position i = 0; i < block.keys; ++i) {
    const position row = block.memory.first + i;
    if (row >= 0 && i < block.memory.rows())
      std::copy_n(head.row(row), head.cols, scratch.row(i));
    else
      std::fill_n(scratch.row(i), head.cols, S(0));
  }
  return scratch.middle_rows(0, block.keys);
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
