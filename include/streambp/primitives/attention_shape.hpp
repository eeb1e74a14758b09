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

// Scalars that one thread needs for a tile: rows of q, o, dq, two blocks of scores, one block of k
// and v, two columns, each row rounded up to 16.
constexpr position attention_workspace(const attention_shape& shape) {
  const auto wide = [](position cols) { return round_up(cols, 16); };
  const position rows = shape.tile_rows(), keys = shape.block_keys();
  return rows * (2 * wide(shape.key_width) + wide(shape.value_width) + 2 * wide(keys)) +
         keys * (wide(shape.key_width) + wide(shape.value_width)) + 2 * wide(rows);
}

}  // namespace streambp
