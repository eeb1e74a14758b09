#include "streambp/cpu/query_tile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

using namespace streambp;
using namespace streambp::cpu;

namespace {

using tile_list = std::vector<std::tuple<position, position, position, position>>;

void put(tile_list& list, const query_tile& tile) {
  list.emplace_back(tile.of.segment, tile.start, tile.row, tile.rows);
}

}  // namespace

TEST_CASE("tiles count from each segment's start") {
  const packed samples({0, 3, 3, 20});
  tile_list tiles;
  tiles_ascending(piece_list(samples, {0, 20}), 8, {0, 20}, [&](const auto& t) { put(tiles, t); });
  CHECK(tiles == tile_list{{0, 0, 0, 3}, {2, 0, 3, 8}, {2, 8, 11, 8}, {2, 16, 19, 1}});
}

TEST_CASE("slots and the descending walk visit each tile once") {
  const packed samples({0, 0, 1, 9, 9, 50, 52, 52, 120, 121, 121});
  for (row_range chunk : {row_range{0, 121}, {9, 25}, {1, 52}, {25, 120}, {120, 121}, {9, 9}}) {
    const piece_list pieces(samples, chunk);
    tile_list whole, slots, back;
    tiles_ascending(pieces, 8, {0, chunk.rows()}, [&](const auto& t) { put(whole, t); });
    for (position first = 0; first < chunk.rows(); first += 8)
      tiles_ascending(pieces, 8, {first, std::min(first + 8, chunk.rows())},
                      [&](const auto& t) { put(slots, t); });
    tiles_descending(pieces, 8, [&](const auto& t) { put(back, t); });
    std::reverse(back.begin(), back.end());
    CHECK(slots == whole);
    CHECK(back == whole);
    position rows = 0;
    for (const auto& tile : whole) {
      CHECK(std::get<2>(tile) == rows);
      CHECK(std::get<1>(tile) % 8 == 0);
      rows += std::get<3>(tile);
    }
    CHECK(rows == chunk.rows());
  }
}
