// Where sums over tokens may be cut: tiles, grains, and chunks made of grains.
#pragma once

#include <algorithm>
#include <vector>

#include "packed.hpp"

namespace streambp {

// Sizes in rows, constants of a backend's description: with the offsets they fix every grain, and
// so the bits.
inline constexpr position largest_tile = 64;

struct geometry {
  position tile = 64;    // of attention's queries: 8, 16, 32 or 64; grains are runs of whole tiles
  position grain = 256;  // at most; a vocabulary-wide head takes less

  constexpr bool operator==(const geometry&) const = default;
};

// The head's grain halves while its widest rows would fill more than 2^22 values (16 MiB of fp32).
constexpr position head_grain_of(geometry g, position widest) {
  position rows = g.grain;
  while (rows > g.tile && rows * widest > position(1) << 22) rows /= 2;
  return std::max(rows / g.tile, position(1)) * g.tile;
}

// Edges 0 = e0 < e1 < ... = tokens of grains: each a greedy run of whole tiles of at most `grain`
// rows, tiles counted from each segment's start. Every edge in `fixed` (ascending) is an edge here
// too.
inline std::vector<position> grain_edges(const packed& samples, position tile, position grain,
                                         const std::vector<position>& fixed = {}) {
  std::vector<position> edges{0};
  position next = 0;  // into fixed
  const auto close = [&](position row) {
    if (row > edges.back()) edges.push_back(row);
  };
  for (position s = 0; s < samples.segments(); ++s) {
    const row_range own = samples.segment(s);
    for (position row = own.first; row < own.last;) {
      const position end = std::min(own.last, row + tile);
      while (next < position(fixed.size()) && fixed[next] < row) ++next;
      const bool must = next < position(fixed.size()) && fixed[next] == row;
      if (must || end - edges.back() > grain) close(row);
      row = end;
    }
  }
  close(samples.tokens());
  return edges;
}

// Edges of chunks: greedy runs of whole grains of at most `rows` rows, at least one grain each.
inline std::vector<position> chunk_edges(const std::vector<position>& grains, position rows) {
  std::vector<position> edges{0};
  for (std::size_t g = 1; g + 1 < grains.size(); ++g)
    if (grains[g + 1] - edges.back() > rows) edges.push_back(grains[g]);
  if (grains.back() > edges.back()) edges.push_back(grains.back());
  return edges;
}

}  // namespace streambp
