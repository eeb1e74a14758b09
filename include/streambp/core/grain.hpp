// Where sums over tokens may be cut: tiles, grains, and chunks made of grains.
#pragma once

#include <algorithm>

#include "edges.hpp"
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

namespace detail {

// Appends the grains of `rows`, which begin and end at edges of tiles.
inline void append_grains(edges& all, const packed& samples, position tile, position grain,
                          row_range rows) {
  // Inside a segment, all but the last grain have so many rows.
  const position whole = std::max(grain / tile, position(1)) * tile, most = std::max(grain, tile);
  position at = rows.first;
  const auto close = [&](position row, position times) {
    all.append(row - at, times);
    at += (row - at) * times;
  };
  for (position s = samples.segment_at(at); s < samples.segments(); ++s) {
    const position first = samples.segment(s).first,
                   last = std::min(samples.segment(s).last, rows.last);
    if (first >= rows.last) break;
    if (at < first && last - at > grain)  // what began in a segment before
      close(first + std::max((at + grain - first) / tile, position(0)) * tile, 1);
    if (at >= first && last - at > most) close(at + whole, ceil_div(last - at - most, whole));
  }
  if (at < rows.last) close(rows.last, 1);
}

// Of chunks one after another, how many may make up what repeats; longer words are listed.
inline constexpr int longest_word = 64;

// Appends the chunks of `within`, which begins and ends at edges of grains.
inline void append_chunks(edges& all, const edges& grains, row_range within, position rows) {
  const auto end_of = [&](position first) {
    if (within.last - first <= rows) return within.last;
    const position end = grains.at_most(first + rows);
    return end > first ? end : grains.after(first);
  };
  for (position first = within.first; first < within.last;) {
    const repetition alike = grains.repetition_at(first);
    edges word;
    position begin = first, end = first, times = 1;
    for (int n = 0; n < longest_word && end < std::min(alike.last, within.last); ++n) {
      begin = end;
      end = end_of(begin);
      word.append(end - begin);
      if ((end - first) % alike.period != 0) continue;
      // What a chunk's end depends on, the grains of `rows` rows from its begin, comes again too.
      const position length = end - first, last = std::min(alike.last, within.last);
      times = std::clamp((last - rows - begin) / length + 1, position(1),
                         std::max((last - first) / length, position(1)));
      break;
    }
    all.append(word, times);
    first += word.back() * times;
  }
}

}  // namespace detail

// Edges 0 = e0 < e1 < ... = tokens of grains: each a greedy run of whole tiles of at most `grain`
// rows, tiles counted from each segment's start. Every edge in `fixed` is an edge here too; it is
// one of tiles.
inline edges grain_edges(const packed& samples, position tile, position grain,
                         const edges& fixed = {}) {
  edges all;
  if (fixed.parts() == 0) detail::append_grains(all, samples, tile, grain, {0, samples.tokens()});
  for (position first = 0; first < fixed.back();) {
    const position rows = fixed.after(first) - first,
                   segment = samples.segment(samples.segment_at(first)).last;
    edges word;
    detail::append_grains(word, samples, tile, grain, {first, first + rows});
    const position times = std::min(fixed.repetition_at(first).times(first, rows),
                                    std::max((segment - first) / rows, position(1)));
    all.append(word, times);
    first += rows * times;
  }
  return all;
}

// Edges of chunks: greedy runs of whole grains of at most `rows` rows, at least one grain each.
inline edges chunk_edges(const edges& grains, position rows) {
  edges all;
  detail::append_chunks(all, grains, {0, grains.back()}, rows);
  return all;
}

// Edges of chunks that end where those of `around` do, which are edges of grains.
inline edges chunk_edges(const edges& grains, position rows, const edges& around) {
  edges all;
  for (position first = 0; first < around.back();) {
    const position length = around.after(first) - first;
    edges word;
    detail::append_chunks(word, grains, {first, first + length}, rows);
    const position times = std::min(around.repetition_at(first).times(first, length),
                                    grains.repetition_at(first).times(first, length));
    all.append(word, times);
    first += length * times;
  }
  return all;
}

// Edges that the grains of one chunk have, at most.
inline position most_edges(const edges& grains, const edges& chunks) {
  position most = 1;
  for (position first = 0; first < chunks.back();) {
    const position rows = chunks.after(first) - first;
    most = std::max(most, grains.lower_bound(first + rows) - grains.lower_bound(first) + 1);
    first += rows * std::min(chunks.repetition_at(first).times(first, rows),
                             grains.repetition_at(first).times(first, rows));
  }
  return most;
}

}  // namespace streambp
