#include <streambp/core/grain.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "lengths.hpp"

using namespace streambp;

using edges = std::vector<position>;

namespace {

// Ends of all tiles, one by one.
edges tile_edges(const packed& samples, position tile) {
  edges all{0};
  for (position s = 0; s < samples.segments(); ++s)
    for (position row = samples.segment(s).first; row < samples.segment(s).last;) {
      row = std::min(row + tile, samples.segment(s).last);
      all.push_back(row);
    }
  return all;
}

bool contains(const edges& all, const edges& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
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
    const edges tiles = tile_edges(samples, tile), grains = grain_edges(samples, tile, grain),
                heads = grain_edges(samples, tile, head_grain, grains),
                chunks = chunk_edges(grains, rows);

    REQUIRE(contains(tiles, grains));
    REQUIRE(contains(tiles, heads));
    REQUIRE(contains(heads, grains));
    REQUIRE(contains(grains, chunks));
    for (const edges& e : {grains, heads, chunks}) {
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
