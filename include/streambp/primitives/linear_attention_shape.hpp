// Linear attention's shape: heads, widths, and the states that its backward starts from.
#pragma once

#include "../core/grain.hpp"

namespace streambp {

// A head's state S (key_width, value_width); a carry holds those of all heads, one after another.
struct linear_attention_shape {
  position heads = 1;
  position key_heads = 1;  // of q and k, each shared by heads / key_heads heads in a row
  position key_width = 1;
  position value_width = 1;
  double scale = 1;
  position tile = largest_tile;  // rows, a multiple of 8

  constexpr position group() const { return heads / key_heads; }
  constexpr position head_state() const { return key_width * value_width; }
  constexpr position state() const { return heads * head_state(); }

  // A chunk keeps the state after every run of largest_tile rows, in those rows' own columns.
  constexpr position kept_columns() const { return ceil_div(state(), largest_tile); }
  // States inside such a run, computed again when tiles are smaller.
  static constexpr position run_tiles() { return largest_tile / 8; }
};

// Scalars that one thread needs: q, k, their gradients, a gradient of v, two squares of a tile;
// states of a run, a gradient; five columns. Each row rounded up to 16.
constexpr position linear_attention_workspace(const linear_attention_shape& shape) {
  const auto wide = [](position cols) { return round_up(cols, 16); };
  const position keys = wide(shape.key_width), values = wide(shape.value_width),
                 tile = wide(shape.tile);
  return shape.tile * (4 * keys + values + 2 * tile) +
         shape.key_width * values * (shape.run_tiles() + 2) + 5 * tile;
}

}  // namespace streambp
