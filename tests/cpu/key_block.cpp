#include "streambp/cpu/key_block.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <streambp/primitives/memory_block.hpp>
#include <vector>

using namespace streambp;
using namespace streambp::cpu;

namespace {

attention_shape shape_with(position window, bool sees_all, position tile) {
  attention_shape shape;
  shape.window = window;
  shape.sees_all = sees_all;
  shape.tile = tile;
  return shape;
}

}  // namespace

TEST_CASE("each row finds each key it sees in one block, and no other") {
  const packed samples({0, 1, 65, 130, 130, 730});
  for (position tile : {8, 64})
    for (position prefix : {0, 3, 200})
      for (position window : {0, 1, 33, 64, 70, 300})
        for (bool sees_all : {false, true}) {
          if (sees_all && window > 0) continue;
          const attention_shape shape = shape_with(window, sees_all, tile);
          const piece_list pieces(samples, {0, samples.tokens()}, prefix);
          position pairs = 0;
          tiles_descending(pieces, tile, [&](const query_tile& at) {
            std::vector<std::vector<int>> found(at.rows,
                                                std::vector<int>(prefix + samples.tokens()));
            key_blocks(shape, at, {0, prefix + samples.tokens()}, [&](const key_block& block) {
              REQUIRE(block.keys % 8 == 0);
              REQUIRE(block.keys <= shape.block_keys());
              REQUIRE(block.memory.rows() <= block.keys);
              for (position i = 0; i < at.rows; ++i) {
                const row_range columns = visible(shape, block, at.place() + i);
                for (position j = columns.first; j < columns.last; ++j)
                  ++found[i][block.memory.first + j];
              }
            });
            for (position i = 0; i < at.rows; ++i) {
              position keys = 0;
              for (position row = 0; row < prefix + samples.tokens(); ++row) {
                const row_range own = samples.segment(at.of.segment);
                const bool of_prefix = row < prefix;
                const position place = of_prefix ? row : row - own.first;
                const bool in = of_prefix || (row >= prefix + own.first && row < prefix + own.last);
                const position mine = prefix + at.start + i;
                const bool sees =
                    in && (sees_all || (place <= mine && (window == 0 || place > mine - window)));
                if (found[i][row] != int(sees)) FAIL("row ", mine, " and key ", place);
                pairs += sees;
                keys += sees;
              }
              CHECK(visible_keys(shape, at.of, at.place() + i) == keys);
            }
          });
          CHECK(pairs == visible_pairs(shape, pieces));
        }
}

// One after another, over turns of memory rows: each block begins in one of them, and its rows have
// theirs where they stand.
TEST_CASE("turns of memory rows share out the blocks of a tile, in order, and their rows") {
  const packed samples({0, 1, 65, 130, 130, 730}, {-1, 0, -1, -1, 2});
  for (position tile : {8, 64})
    for (position window : {0, 33, 300})
      for (position rows : {1, 50, 192, 2000}) {
        const attention_shape shape = shape_with(window, false, tile);
        const position prefix = 200, memory = prefix + samples.tokens();
        const piece_list pieces(samples, {0, samples.tokens()}, prefix);
        tiles_descending(pieces, tile, [&](const query_tile& at) {
          std::vector<key_block> all, begun;
          key_blocks(shape, at, {0, memory}, [&](const key_block& block) { all.push_back(block); });
          std::vector<int> held(memory);
          int begins = 0, ends = 0;
          for (row_range turn{0, rows}; turn.first < memory;
               turn.first += rows, turn.last += rows) {
            const tile_turn t = turn_of(shape, at, turn, turn.first == 0);
            const std::size_t before = begun.size();
            begins += t.begins;
            ends += t.ends;
            if (t.begins) CHECK(before == 0);
            key_blocks(shape, at, turn, [&](key_block block) {
              CHECK(t.reaches);
              for (position i = block.turn.first; i < block.turn.last; ++i)
                ++held[turn.first + block.memory.first + i];
              CHECK(turn.first + block.memory.first + block.turn.first >= turn.first);
              CHECK(turn.first + block.memory.first + block.turn.last <= turn.last);
              if (!block.begins()) return;
              CHECK(t.runs);
              CHECK(turn.first + block.memory.last <= lent_rows(shape, turn, memory).last);
              block.memory.first += turn.first, block.memory.last += turn.first;
              begun.push_back(block);
            });
            if (t.ends) CHECK((begun.size() > before && begun.size() == all.size()));
          }
          CHECK(begins == 1);
          CHECK(ends == 1);
          REQUIRE(begun.size() == all.size());
          for (std::size_t i = 0; i < all.size(); ++i) {
            CHECK(begun[i].place == all[i].place);
            CHECK(begun[i].keys == all[i].keys);
            CHECK(begun[i].memory == all[i].memory);
            for (position row = all[i].memory.first; row < all[i].memory.last; ++row) --held[row];
          }
          CHECK(held == std::vector<int>(memory));
        });
      }
}

TEST_CASE("the blocks of a causal tile do not depend on the rows that exist") {
  for (position window : {0, 70}) {
    const attention_shape shape = shape_with(window, false, 64);
    std::vector<position> sizes[2];
    for (int i : {0, 1}) {
      const packed samples = packed::one(i == 0 ? 449 : 2000);
      tiles_ascending(piece_list(samples, {0, samples.tokens()}), 64, {448, 449},
                      [&](const query_tile& tile) {
                        key_blocks(shape, tile, {0, samples.tokens()}, [&](const key_block& block) {
                          sizes[i].push_back(block.place);
                          sizes[i].push_back(block.keys);
                        });
                      });
    }
    CHECK(sizes[0] == sizes[1]);
    CHECK(!sizes[0].empty());
  }
}

TEST_CASE("rows that do not exist are zeros and never read") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> memory(40 * 3, nan), scratch(8 * 3, nan);
  for (position i = 20 * 3; i < 25 * 3; ++i) memory[i] = float(i);
  const view<const float> rows =
      block_rows<float>({0, 8, {20, 25}, {0, 5}}, {memory.data(), 40, 3}, {scratch.data(), 8, 3});
  CHECK(rows.rows == 8);
  for (position i = 0; i < 8; ++i)
    for (position j = 0; j < 3; ++j) CHECK(rows(i, j) == (i < 5 ? float((20 + i) * 3 + j) : 0));
  // Nor those that were lent before.
  const view<const float> rest = block_rows<float>(
      {0, 8, {-3, 5}, {3, 8}}, {memory.data() + 60, 5, 3}, {scratch.data(), 8, 3});
  for (position i = 0; i < 8; ++i)
    for (position j = 0; j < 3; ++j) CHECK(rest(i, j) == (i < 3 ? 0 : float((17 + i) * 3 + j)));
}
