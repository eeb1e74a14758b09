// FLOPs counted on rows without data.
#include <streambp/planner/cost.hpp>

#include <doctest/doctest.h>

#include "../core/lengths.hpp"
#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

template <class Model>
struct counted {
  model_sections<cpu::device<double>, Model> sections;
  plan_shape shape;
  flop_counts<cpu::device<double>> flops;
  counted(const Model& model, const packed& samples, position features)
      : sections(model, features), shape(shape_of(samples, features)), flops(sections, shape) {}

  static plan_shape shape_of(const packed& samples, position features) {
    plan_shape s;
    s.samples = samples;
    s.features = features;
    return s;
  }
};

}  // namespace

TEST_CASE("flop_counts: a product of n x k and k x m is 2 n k m, three of them with its backward") {
  counted c(repeat(1, linear(8, 6)) | linear(6, 8) | residual(frozen(linear(8, 8))) | linear(8, 5),
            packed::one(61), 8);
  CHECK(c.flops.of(0, {0, 61}, {}) == 2 * 61 * 8 * 6);
  CHECK(c.flops.of(0, {0, 61}, {purpose::backward}) == 2 * (2 * 61 * 8 * 6));
  CHECK(c.flops.of(0, {10, 20}, {}) == 2 * 10 * 8 * 6);
  CHECK(c.flops.of(0, {10, 10}, {}) == 0);
  CHECK(position(c.flops.head(0, false)) % (2 * 61) == 0);
}

TEST_CASE("flop_counts: a frozen layer counts no weight gradient") {
  counted trained(attend | linear(8, 5), samples, 8);
  counted frozen_one(frozen(attend) | linear(8, 5), samples, 8);
  CHECK(trained.flops.of(0, {0, 61}, {}) == frozen_one.flops.of(0, {0, 61}, {}));
  const position weights = 2 * 61 * 4 * 8 * 8;  // wq, wk, wv, wo
  const big_count saved = trained.flops.of(0, {0, 61}, {purpose::backward}) -
                          frozen_one.flops.of(0, {0, 61}, {purpose::backward});
  CHECK(saved >= weights);
  CHECK(saved < weights + 61 * 8 * 8);  // and the norm's gain
}

TEST_CASE("flop_counts: chunks add up to the whole, where attention is cut too") {
  counted c(attend | mlp | recur | linear(8, 5), samples, 8);
  for (position section = 0; section < 3; ++section) {
    big_count forward, backward;
    for (const row_range rows : {row_range{0, 17}, {17, 33}, {33, 61}}) {
      forward += c.flops.of(section, rows, {});
      backward += c.flops.of(section, rows, {purpose::backward});
    }
    CHECK(forward == c.flops.of(section, {0, 61}, {}));
    CHECK(backward == c.flops.of(section, {0, 61}, {purpose::backward}));
  }
}

TEST_CASE("flop_counts: intervals add up to their chunks, whatever the samples and the window") {
  dice draw(31);
  for (int round = 0; round < 200; ++round) {
    const position window = draw(2) * (1 + draw(300)), rows = 8 * (1 + draw(6)), n = 2 + draw(4);
    const std::vector<position> alike(std::size_t(1 + draw(40)), 16 * (1 + draw(8)));
    const packed of = draw(2) == 0 ? packed_lengths(alike)
                                   : packed_lengths({draw(2000), 1, draw(900), 64, 64, 128, 77});
    const auto windowed =
        residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2, .window = window}));
    counted c(windowed | mlp | recur | linear(8, 5), of, 8);
    step_plan frame;
    frame.choice.chunk = rows;
    frame.chunks = chunk_edges(grain_edges(of, 8, 16), rows);
    const position intervals = (frame.chunk_count() - 1) / n;
    const pass p{purpose::refill, 0, 3, {0, intervals * n}, false, n};
    for (const position section : {0, 1, 2}) {
      const visit why{purpose::refill, section < 2};
      big_count one_by_one;
      for (position k = 0; k < intervals; ++k)
        for (position chunk = k * n; chunk < (k + 1) * n - 1; ++chunk)
          one_by_one += c.flops.of(section, frame.chunks.part(chunk), why);
      REQUIRE(c.flops.of_intervals(section, frame, p, why) == one_by_one);
    }
  }
}

TEST_CASE("flop_counts: attention by hand, over the pairs of a query and a key that it sees") {
  // One head of width 8; samples of 1, 29 and 31 rows.
  counted c(causal_attention({.features = 8}) | linear(8, 5), samples, 8);
  const position pairs = 1 + 29 * 30 / 2 + 31 * 32 / 2, projections = 4 * 2 * 61 * 8 * 8;
  const big_count forward = c.flops.of(0, {0, 61}, {});
  CHECK(forward >= projections + 4 * pairs * 8);  // q kᵀ and P v
  CHECK(forward <= projections + 4 * pairs * 8 + 10 * pairs);
  // What is restored is not computed again.
  CHECK(c.flops.of(0, {0, 61}, {purpose::replay_rebuild, true, true}) == projections);
  CHECK(c.flops.of(0, {0, 61}, {purpose::replay, true, true}) == projections / 2);
}

TEST_CASE("flop_counts: only what feeds a state runs when nobody wants the output") {
  counted c(attend | linear(8, 5), samples, 8);
  const big_count state = c.flops.of(0, {0, 61}, {purpose::rebuild, false});
  const position keys = 2 * 2 * 61 * 8 * 8;
  CHECK(state >= keys);
  CHECK(state < keys + 61 * 8 * 8);
}
