#include <streambp/core/grain.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "lengths.hpp"

using namespace streambp;

namespace {

using list = std::vector<position>;

list listed(const edges& e) { return {e.begin(), e.end()}; }

// Ends of all tiles, one by one.
list tile_edges(const packed& samples, position tile) {
  list all{0};
  for (position s = 0; s < samples.segments(); ++s)
    for (position row = samples.segment(s).first; row < samples.segment(s).last;) {
      row = std::min(row + tile, samples.segment(s).last);
      all.push_back(row);
    }
  return all;
}

bool contains(const list& all, const list& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Grains tile by tile.
list naive_grains(const packed& samples, position tile, position grain, const list& fixed) {
  list all{0};
  const auto close = [&](position row) {
    if (row > all.back()) all.push_back(row);
  };
  for (position s = 0; s < samples.segments(); ++s)
    for (position row = samples.segment(s).first; row < samples.segment(s).last;) {
      const position end = std::min(samples.segment(s).last, row + tile);
      if (std::binary_search(fixed.begin(), fixed.end(), row) || end - all.back() > grain)
        close(row);
      row = end;
    }
  close(samples.tokens());
  return all;
}

// Chunks grain by grain.
list naive_chunks(const list& grains, position rows) {
  list all{0};
  for (std::size_t g = 1; g + 1 < grains.size(); ++g)
    if (grains[g + 1] - all.back() > rows) all.push_back(grains[g]);
  if (grains.back() > all.back()) all.push_back(grains.back());
  return all;
}
list naive_chunks(const list& grains, position rows, const list& around) {
  list all{0};
  for (std::size_t c = 1; c < around.size(); ++c) {
    list own{0};
    for (const position g : grains)
      if (around[c - 1] < g && g <= around[c]) own.push_back(g - around[c - 1]);
    for (const position e : naive_chunks(own, rows))
      if (e > 0) all.push_back(around[c - 1] + e);
  }
  return all;
}

// Some samples are long, so that words repeat.
packed mixed_samples(dice& draw, position tile) {
  if (draw(2) == 0) return random_samples(draw, tile);
  std::vector<position> lengths(std::size_t(1 + draw(4)));
  for (position& n : lengths) n = draw(3) == 0 ? tile * draw(60) : draw(3000);
  return packed_lengths(lengths);
}

}  // namespace

TEST_CASE("grains are greedy runs of whole tiles, counted from each segment's start") {
  CHECK(grain_edges(packed({0, 20}), 8, 16) == edges{0, 16, 20});
  // A segment of 3 and the next one's first tile fill a grain together, its second tile does not
  // fit.
  CHECK(grain_edges(packed({0, 3, 20}), 8, 16) == edges{0, 11, 20});
  CHECK(grain_edges(packed({0, 3, 3, 5}), 8, 16) == edges{0, 5});
  CHECK(grain_edges(packed({0, 0}), 8, 16) == edges{0});
  CHECK(grain_edges(packed({0, 20}), 8, 8) == edges{0, 8, 16, 20});
}

TEST_CASE("grains: a fixed edge closes one, though more would fit") {
  CHECK(grain_edges(packed({0, 40}), 8, 32) == edges{0, 32, 40});
  CHECK(grain_edges(packed({0, 40}), 8, 32, {0, 16, 40}) == edges{0, 16, 40});
}

TEST_CASE("chunks are greedy runs of whole grains, one at least") {
  const edges grains{0, 16, 20, 36, 40};
  CHECK(chunk_edges(grains, 1) == grains);
  CHECK(chunk_edges(grains, 20) == edges{0, 20, 40});
  CHECK(chunk_edges(grains, 39) == edges{0, 36, 40});
  CHECK(chunk_edges(grains, 40) == edges{0, 40});
  CHECK(chunk_edges(grains, 1000) == edges{0, 40});
  CHECK(chunk_edges({0}, 8) == edges{0});
}

TEST_CASE("a head's grain shrinks with its width, to whole tiles and to one at least") {
  static_assert(head_grain_of({64, 256}, 100) == 256);
  static_assert(head_grain_of({64, 256}, 16384) == 256);
  static_assert(head_grain_of({64, 256}, 16385) == 128);
  static_assert(head_grain_of({64, 256}, 131072) == 64);
  static_assert(head_grain_of({64, 256}, position(1) << 40) == 64);
  static_assert(head_grain_of({64, 100}, 1) == 64);
  static_assert(head_grain_of({8, 20}, 1) == 16);
}

TEST_CASE(
    "whatever the offsets: grains cut no tile, head grains refine grains, chunks cut no grain") {
  dice draw(2);
  for (int round = 0; round < 500; ++round) {
    const position tile = position(8) << draw(3), grain = tile + draw(4 * tile);
    const position head_grain = tile + draw(grain - tile + 1), rows = 1 + draw(200);
    const packed samples = random_samples(draw, tile);
    const edges grain_list = grain_edges(samples, tile, grain);
    const list tiles = tile_edges(samples, tile), grains = listed(grain_list),
               heads = listed(grain_edges(samples, tile, head_grain, grain_list)),
               chunks = listed(chunk_edges(grain_list, rows));

    REQUIRE(contains(tiles, grains));
    REQUIRE(contains(tiles, heads));
    REQUIRE(contains(heads, grains));
    REQUIRE(contains(grains, chunks));
    for (const list& e : {grains, heads, chunks}) {
      REQUIRE(e.front() == 0);
      REQUIRE(e.back() == samples.tokens());
      REQUIRE(std::adjacent_find(e.begin(), e.end(), std::greater_equal<>()) == e.end());
    }

    for (std::size_t g = 1; g < grains.size(); ++g) REQUIRE(grains[g] - grains[g - 1] <= grain);
    for (std::size_t g = 1; g < heads.size(); ++g) REQUIRE(heads[g] - heads[g - 1] <= head_grain);
    for (std::size_t c = 1; c < chunks.size(); ++c) {
      const auto next = std::upper_bound(grains.begin(), grains.end(), chunks[c - 1]);
      REQUIRE((chunks[c] - chunks[c - 1] <= rows || chunks[c] == *next));
    }
    // Greedy: what follows would not have fitted.
    for (std::size_t g = 1; g + 1 < grains.size(); ++g) {
      const auto next = std::upper_bound(tiles.begin(), tiles.end(), grains[g]);
      REQUIRE(*next - grains[g - 1] > grain);
    }
    for (std::size_t c = 1; c + 1 < chunks.size(); ++c) {
      const auto next = std::upper_bound(grains.begin(), grains.end(), chunks[c]);
      REQUIRE(*next - chunks[c - 1] > rows);
    }
  }
}

TEST_CASE("whatever the offsets, tiles, grains, fixed edges: the edges of a list made one by one") {
  dice draw(11);
  position longest = 0;
  for (int round = 0; round < 3000; ++round) {
    const position tile = position(8) << draw(3),
                   grain = draw(4) == 0 ? 1 + draw(2 * tile) : tile + draw(12 * tile),
                   head_grain = 1 + draw(grain), rows = 1 + draw(draw(2) == 0 ? 200 : 3000),
                   head_rows = 1 + draw(draw(2) == 0 ? 200 : 3000);
    const packed samples = mixed_samples(draw, tile);
    CAPTURE(tile);
    CAPTURE(grain);
    CAPTURE(head_grain);
    CAPTURE(rows);
    CAPTURE(head_rows);
    const edges grains = grain_edges(samples, tile, grain),
                heads = grain_edges(samples, tile, head_grain, grains),
                chunks = chunk_edges(grains, rows), over_all = chunk_edges(heads, head_rows),
                inside = chunk_edges(heads, head_rows, chunks);
    const list naive = naive_grains(samples, tile, grain, {}),
               naive_heads = naive_grains(samples, tile, head_grain, naive),
               naive_chunk = naive_chunks(naive, rows);
    REQUIRE(listed(grains) == naive);
    REQUIRE(listed(heads) == naive_heads);
    REQUIRE(listed(chunks) == naive_chunk);
    REQUIRE(listed(over_all) == naive_chunks(naive_heads, head_rows));
    REQUIRE(listed(inside) == naive_chunks(naive_heads, head_rows, naive_chunk));
    longest = std::max(longest, heads.parts());
  }
  CHECK(longest > 300);

  // Fixed edges that are no grains: any tiles.
  for (int round = 0; round < 500; ++round) {
    const position tile = 8, grain = tile + draw(60);
    const packed samples = mixed_samples(draw, tile);
    list fixed{0};
    for (const position t : tile_edges(samples, tile))
      if (t > 0 && (draw(4) == 0 || t == samples.tokens())) fixed.push_back(t);
    edges fixed_edges;
    for (std::size_t i = 1; i < fixed.size(); ++i) fixed_edges.append(fixed[i] - fixed[i - 1]);
    REQUIRE(listed(grain_edges(samples, tile, grain, fixed_edges)) ==
            naive_grains(samples, tile, grain, fixed));
  }
}

TEST_CASE("a long sample takes no longer than a short one, whatever divides what") {
  const position rows = (position(1) << 40) + 12345;
  for (const position grain : {256, 320, 448})
    for (const position head_grain : {64, 128, 192})
      for (const position chunk : {256, 1000, 70000})
        for (const position head_chunk : {1, 500, 5000}) {
          const edges grains = grain_edges(packed::one(rows), 64, grain),
                      heads = grain_edges(packed::one(rows), 64, head_grain, grains),
                      chunks = chunk_edges(grains, chunk);
          REQUIRE(grains.parts() == ceil_div(rows, grain));
          REQUIRE(chunks.parts() == ceil_div(rows, std::max(chunk / grain, position(1)) * grain));
          REQUIRE(heads.parts() >= ceil_div(rows, head_grain));
          REQUIRE(chunk_edges(heads, head_chunk).back() == rows);
          REQUIRE(chunk_edges(heads, head_chunk, chunks).back() == rows);
        }
}
