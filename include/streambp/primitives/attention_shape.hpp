// Attention's shape: heads, widths, and which keys a row sees.
#pragma once

#include <algorithm>

#include "../core/big_count.hpp"
#include "../core/packed.hpp"

namespace streambp {

struct attention_shape {
  position heads = 1;
  position kv_heads = 1;  // each shared by heads / kv_heads query heads, one after another
  position key_width = 1;
  position value_width = 1;
  double scale = 1;
  double softcap = 0;     // c: scores are c tanh(s / c); 0 = none
  position window = 0;    // n: a row sees itself and n - 1 before; 0 = all before
  bool sees_all = false;  // every row of its segment, before and after; window is 0 then
  position tile = 64;     // query rows, a multiple of 8

  constexpr position group() const { return heads / kv_heads; }

  // A tile's queries of one group are the rows of one product.
  constexpr position tile_rows() const { return round_up(tile * group(), 8); }

  // Keys in a block: whole tiles, about 192; few enough that a block of scores stays in the second
  // cache, and a multiple of the products' panels.
  constexpr position block_keys() const { return round_up(192, tile); }
};

// The first key that a tile computes of a range of memory: `place` is the tile's first row's among
// the keys that its segment sees, `range_place` the range's.
constexpr position first_key(const attention_shape& shape, position place, position range_place) {
  return shape.window > 0 ? std::max(position(0), place - shape.window + 1 - range_place) /
                                shape.tile * shape.tile
                          : 0;
}

// Pairs of a query row of the piece and a key it sees, for one head.
constexpr big_count visible_pairs(const attention_shape& shape, const piece& p) {
  if (shape.sees_all) {
    position keys = 0;
    for (const row_range& r : p.seen) keys += r.rows();
    return big_count(p.rows) * keys;
  }
  // Row i sees min(first + i, most) keys; `rising` rows see all before them.
  const position first = p.before + p.start + 1;
  const position most = shape.window > 0 ? shape.window : first + p.rows;
  const position rising = std::clamp(most - first, position(0), p.rows);
  const big_count up = rising, level = p.rows - rising;
  return up * first + up * (rising - 1) / 2 + level * most;
}

inline big_count visible_pairs(const attention_shape& shape, const piece_list& pieces) {
  big_count pairs;
  for (const piece& p : pieces) pairs += visible_pairs(shape, p);
  return pairs;
}

namespace detail {

// Σ clamp(x + i, 0, most) over i < n
constexpr big_count clamped_sum(position x, position n, position most) {
  const position nothing = std::clamp(-x, position(0), n);
  const position rising = std::clamp(most - x, nothing, n) - nothing;
  const big_count up = rising;
  return up * (x + nothing) + up * (rising - 1) / 2 + big_count(n - nothing - rising) * most;
}

}  // namespace detail

// Those of them whose keys are among some rows of the memory.
constexpr big_count visible_pairs(const attention_shape& shape, const piece& p, row_range memory) {
  if (memory.first <= 0 && memory.last >= p.seen.back().last) return visible_pairs(shape, p);
  big_count pairs;
  position place =
      p.before + p.start + 1;  // of the first row, among the range's keys, and one more
  for (const row_range& seen : p.seen) {
    const row_range held{std::max(seen.first, memory.first), std::min(seen.last, memory.last)};
    const position first = place - (held.first - seen.first);
    place -= seen.rows();
    if (held.rows() <= 0) continue;
    if (shape.sees_all) {
      pairs += big_count(p.rows) * held.rows();
      continue;
    }
    pairs += detail::clamped_sum(first, p.rows, held.rows());
    if (shape.window > 0) pairs -= detail::clamped_sum(first - shape.window, p.rows, held.rows());
  }
  return pairs;
}

inline big_count visible_pairs(const attention_shape& shape, const piece_list& pieces,
                               row_range memory) {
  big_count pairs;
  for (const piece& p : pieces) pairs += visible_pairs(shape, p, memory);
  return pairs;
}

// Scalars that one thread needs for a tile: rows of q, o, dq, two blocks of scores, one block of k
// and v, two columns, each row rounded up to 16.
constexpr position attention_workspace(const attention_shape& shape) {
  const auto wide = [](position cols) { return round_up(cols, 16); };
  const position rows = shape.tile_rows(), keys = shape.block_keys();
  return rows * (2 * wide(shape.key_width) + wide(shape.value_width) + 2 * wide(keys)) +
         keys * (wide(shape.key_width) + wide(shape.value_width)) + 2 * wide(rows);
}

}  // namespace streambp
