// The query tiles of attention: runs of `tile` rows, counted from the start of each segment.
#pragma once

#include <algorithm>

#include "../core/packed.hpp"
#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Chunk edges never cut a tile; the last tile of a segment may be ragged.
struct query_tile {
  piece of;
  position start = 0;  // position of the first row in its segment, a multiple of the tile
  position row = 0;    // first row, counted from the chunk's start
  position rows = 0;   // that exist

  // Place of the tile's first row among the keys that its segment sees.
  constexpr position place() const { return of.before + start; }
};

// Calls f(query_tile) for each tile whose first row lies in `starts`, counted from the chunk's
// start.
template <class Visit>
void tiles_ascending(const piece_list& pieces, position tile, row_range starts,
                     const Visit& visit) {
  const position from = pieces.rows().first + starts.first;
  piece_list::iterator at(pieces, from, pieces.samples().segment_at(from));
  for (; at != pieces.end(); ++at) {
    const piece p = *at;
    if (p.row >= starts.last) return;
    const position behind = round_up(p.start, tile) - p.start;
    for (position i = behind; i < std::min(p.rows, starts.last - p.row); i += tile)
      visit(query_tile{p, p.start + i, p.row + i, std::min(tile, p.rows - i)});
  }
}

// Calls f(query_tile) for each tile of the chunk, last first.
template <class Visit>
void tiles_descending(const piece_list& pieces, position tile, const Visit& visit) {
  pieces.descending([&](const piece& p) {
    for (position i = (p.rows - 1) / tile * tile; i >= 0; i -= tile)
      visit(query_tile{p, p.start + i, p.row + i, std::min(tile, p.rows - i)});
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
