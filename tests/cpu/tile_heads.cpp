#include <streambp/cpu/tile_heads.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 53;
// A prompt with two completions, one sample of one row, an empty one, and the rest.
const packed samples({0, 11, 12, 12, 19, 32, rows}, {-1, -1, -1, 0, 0, -1});

constexpr attention_shape shapes[] = {
    {.heads = 1, .kv_heads = 1, .key_width = 3, .value_width = 5, .tile = 8},
    {.heads = 6, .kv_heads = 2, .key_width = 17, .value_width = 7, .tile = 8},
    {.heads = 5, .kv_heads = 5, .key_width = 16, .value_width = 1, .tile = 16}};

// Calls f(tile_heads) for every tile and shared head of the chunk.
template <class F>
void each_tile(const attention_shape& shape, row_range chunk, const F& f) {
  tiles_ascending(piece_list(samples, chunk), shape.tile, {0, chunk.rows()},
                  [&](const query_tile& tile) {
                    for (position g = 0; g < shape.kv_heads; ++g) f(tile_heads{shape, tile, g});
                  });
}

}  // namespace

TEST_CASE_TEMPLATE("dots of rows: values, and bits at any address", S, float, double) {
  for (const position d : widths) {
    const guarded<S> x(2, d, 1, 1., 0.1), moved(2, d, 1, 1., 0.1, 4);
    const S dot = dot_row((*x).row(0), (*x).row(1), d);
    double right = 0, size = 0;
    for (position j = 0; j < d; ++j) {
      right += double(x(0, j)) * double(x(1, j));
      size += std::abs(double(x(0, j)) * double(x(1, j)));
    }
    CHECK(std::abs(double(dot) - right) <= 40 * std::numeric_limits<S>::epsilon() * size);
    CHECK(dot == dot_row((*moved).row(0), (*moved).row(1), d));
  }
  CHECK(dot_row<S>(nullptr, nullptr, 0) == 0);
}

TEST_CASE("a tile's rows are its tokens, each with the heads of a group, in eights") {
  const attention_shape shape{.heads = 6, .kv_heads = 2, .tile = 8};
  std::vector<position> present, filled;
  each_tile(shape, {0, rows}, [&](const tile_heads& tile) {
    if (tile.kv_head != 1) return;
    present.push_back(tile.present());
    filled.push_back(tile.rows());
    const packed& all = samples;
    const position segment = tile.tile.of.segment, parent = all.parent(segment);
    for (position r = 0; r < tile.present(); ++r) {
      CHECK(tile.row(r) == tile.tile.row + r / 3);
      CHECK(tile.head(r) == 3 + r % 3);
      CHECK(tile.place(r) == tile.row(r) - all.segment(segment).first +
                                 (parent < 0 ? 0 : all.segment(parent).rows()));
    }
  });
  // Of 11, 1, 7, 13 and 21 tokens, eight to a tile.
  CHECK(present == std::vector<position>{24, 9, 3, 21, 24, 15, 24, 24, 15});
  CHECK(filled == std::vector<position>{24, 16, 8, 24, 24, 16, 24, 24, 16});
}

TEST_CASE_TEMPLATE("tiles gather rows times a factor, above zeros, and give them back", S, float,
                   double) {
  for (const attention_shape& shape : shapes) {
    const position d = shape.key_width, cols = shape.heads * d;
    const guarded<S> all(rows, cols, 1, 1., 0.);
    guarded<S> back(rows, cols), in_chunks(rows, cols, 6);
    const auto right = [&](const tile_heads& tile, position r, position j) {
      return r < tile.present()
                 ? S(0.3) *
                       all(tile.tile.row + r / tile.shape.group(),
                           (tile.kv_head * tile.shape.group() + r % tile.shape.group()) * d + j)
                 : S(0);
    };
    each_tile(shape, {0, rows}, [&](const tile_heads& tile) {
      guarded<S> tiled(tile.rows(), d);
      tile.gather<S>(*all, S(0.3), *tiled);
      CHECK(error_of(*tiled, [&](position r, position j) { return right(tile, r, j); }) == 0);
      CHECK(tiled.intact());
      tile.scatter<S>(*tiled, S(-2), *back);
      CHECK(&(*tile.part(*all, tile.present() - 1, d)) ==
            &all(tile.row(tile.present() - 1), tile.head(tile.present() - 1) * d));
    });
    CHECK(error_of(*back, [&](position i, position j) { return S(-2) * (S(0.3) * all(i, j)); }) ==
          0);
    CHECK(back.intact());
    // Chunks whose edges cut no tile.
    const position edges[] = {0, 11, 12, shape.tile == 16 ? 48 : 27, rows};
    for (int c = 0; c < 4; ++c) {
      const row_range own{edges[c], edges[c + 1]};
      each_tile(shape, own, [&](const tile_heads& tile) {
        guarded<S> tiled(tile.rows(), d, 3);
        tile.gather<S>((*all).rows_in(own), S(0.3), *tiled);
        tile.scatter<S>(*tiled, S(-2), (*in_chunks).rows_in(own));
      });
    }
    CHECK(same_bits(back, in_chunks));
    CHECK(in_chunks.intact());
  }
}

TEST_CASE("a group's heads share the columns of one key and value head") {
  const guarded<float> memory(rows, 5 * 7, 1, 1., 0.);
  const tile_heads tile{{.heads = 15, .kv_heads = 5}, {}, 3};
  const view<float> shared = tile.shared(*memory, 7);
  CHECK((shared.rows == rows && shared.cols == 7 && shared.stride == (*memory).stride));
  CHECK(&shared(2, 1) == &memory(2, 3 * 7 + 1));
}

TEST_CASE_TEMPLATE("what a thread holds of a tile fills its workspace, and nothing twice", S, float,
                   double) {
  for (const attention_shape& shape : shapes) {
    const attention_scratch<S> counted(shape, nullptr);
    CHECK(counted.used == attention_workspace(shape));
    std::vector<S> store(std::size_t(counted.used + 16), S(0));
    const attention_scratch<S> held(shape, store.data());
    for (const auto* of : {&counted, &held})
      for (const view<S>& v :
           {of->q, of->o, of->dq, of->scores, of->d_scores, of->k, of->v, of->maximum, of->sum}) {
        CHECK(v.stride % 16 == 0);
        CHECK((v.data == nullptr) == (of == &counted));
        if (!v.data) continue;
        CHECK((v.data - store.data()) % 16 == 0);
        for (position i = 0; i < v.rows; ++i)
          for (position j = 0; j < v.cols; ++j) v(i, j) += 1;
      }
    const position products = shape.tile * shape.heads / shape.kv_heads;  // a multiple of 8
    position entries = 0;
    for (const auto& [r, c] : {std::pair{products, 2 * shape.key_width + shape.value_width},
                               {products, 2 * shape.block_keys()},
                               {shape.block_keys(), shape.key_width + shape.value_width},
                               {2, products}})
      entries += r * c;
    CHECK(position(std::count(store.begin(), store.end(), S(1))) == entries);
    CHECK(position(std::count(store.begin(), store.end(), S(0))) ==
          position(store.size()) - entries);
    CHECK(std::all_of(store.end() - 16, store.end(), [](S x) { return x == 0; }));
  }
}
