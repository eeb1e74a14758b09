#include <streambp/planner/planner.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "../core/lengths.hpp"
#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

const auto four = blocks(4);  // sections: embedding, then attend and mlp, four times
using model_type = decltype(blocks(1));

using cuts = std::vector<position>;
cuts cuts_of(const step_plan& p) {
  cuts all;
  for (const stage_plan& s : p.choice.stages) all.push_back(s.first);
  return all;
}

planner_of<model_type> planner_for(plan_options options) {
  options.grains = grains;
  return {four, samples, options};
}

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const shape_error& e) {
    return e.what();
  }
  return "";
}
std::string complaint(const plan_options& options) {
  return complaint([&] { planner_of<model_type>(four, samples, options); });
}
std::string complaint(const plan_choice& choice) {
  return complaint([&] { planner_for({}).complete(choice); });
}

}  // namespace

TEST_CASE("plain backpropagation: one stage, one chunk, nothing computed twice") {
  auto all = planner_for({});
  const step_plan p = all.plain();
  CHECK(cuts_of(p) == cuts{0});
  CHECK(p.chunk_count() == 1);
  CHECK(p.head_chunks == edges{0, 61});
  CHECK_FALSE(p.choice.fuses_head);
  CHECK(p.choice.stages[0].keeps_chunk);
  flop_counts<cpu::device<double>> flops(all.sections(), p.shape);
  big_count once = all.head_flops();
  for (position s = 0; s < position(all.model().count()); ++s)
    once += flops.of(s, {0, 61}, {}) + flops.of(s, {0, 61}, {purpose::backward});
  CHECK(p.flops == once);
}

TEST_CASE("plain backpropagation: cuts where they are forced, every stage's chunk kept") {
  const auto model = mixed();  // remember, read, recurrence, attention
  planner_of<decltype(model)> all(model, samples, {.features = 8, .grains = grains});
  const step_plan p = all.plain();
  CHECK(cuts_of(p) == cuts{0, 1});
  CHECK(p.chunk_count() == 1);
  for (const stage_plan& s : p.choice.stages) CHECK(s.keeps_chunk);
}

TEST_CASE("checkpointing: a stage a block, one chunk, nothing kept") {
  const step_plan p = planner_for({.budget = 1_KiB, .chunk = 16, .stage = 2}).checkpointing();
  CHECK(cuts_of(p) == cuts{0, 3, 5, 7});
  CHECK(p.chunk_count() == 1);
  CHECK_FALSE(p.choice.fuses_head);
  for (const stage_plan& s : p.choice.stages) CHECK(s == stage_plan{s.first, s.last});
}

TEST_CASE("a forced stage is made of so many blocks, whatever is cheaper") {
  CHECK(cuts_of(*planner_for({.stage = 1}).search()) == cuts{0, 3, 5, 7});
  CHECK(cuts_of(*planner_for({.stage = 2}).search()) == cuts{0, 5});
  CHECK(cuts_of(*planner_for({.stage = 3}).search()) == cuts{0, 7});
  CHECK(cuts_of(*planner_for({.stage = 4}).search()) == cuts{0});
  CHECK(cuts_of(*planner_for({.stage = 2, .keep = false}).search()) == cuts{0, 5});
  CHECK(cuts_of(*planner_for({.stage = 2}).search(true)) == cuts{0, 5});
}

TEST_CASE("forced chunks are taken, in whole grains; without keeping nothing is kept") {
  const step_plan p = *planner_for({.chunk = 40, .head_chunk = 17, .keep = false}).search();
  CHECK(p.choice.chunk == 40);
  CHECK(p.choice.head_chunk == 17);
  CHECK(p.chunks == chunk_edges(p.grains, 40));
  CHECK(p.largest_head_chunk() <= 17);
  for (const stage_plan& s : p.choice.stages) CHECK(s == stage_plan{s.first, s.last});
  CHECK(p.bytes.kept == 0);
  CHECK_FALSE(planner_for({.fuse_head = false}).search()->choice.fuses_head);
}

TEST_CASE("less budget never costs less, and never more bytes") {
  const std::size_t least = planner_for({}).search(true)->peak(),
                    most = planner_for({}).search()->peak();
  REQUIRE(least < most);
  double cost = 0;
  for (std::size_t budget = most; budget >= least; budget -= (most - least) / 16) {
    const step_plan p = *planner_for({.budget = budget}).search();
    CHECK(p.peak() <= budget);
    CHECK(p.cost >= cost);
    cost = p.cost;
  }
}

TEST_CASE("peaks fall with chunks: of the trunk, and of the head") {
  const stage_plan one{0, 3}, rest{3, 9};
  std::size_t before = ~std::size_t(0);
  for (const position chunk : {61, 32, 16}) {
    const std::size_t peak = planner_for({}).complete({{one, rest}, chunk, 16, false}).peak();
    CHECK(peak < before);
    before = peak;
  }
  before = ~std::size_t(0);
  for (const position head_chunk : {61, 32, 16}) {
    const std::size_t region = planner_for({})
                                   .complete({{{0, 9, false, false, true}}, 16, head_chunk, false})
                                   .bytes.region;
    CHECK(region <= before);
    before = region;
  }
}

TEST_CASE("options that cannot be are refused in words") {
  CHECK(complaint({.threads = 0, .grains = grains}) == "plan: 0 threads; at least 1");
  CHECK(complaint({.grains = {12, 24}}) == "plan: a tile of 12 rows; it is 8, 16, 32 or 64");
  CHECK(complaint({.grains = {16, 8}}) == "plan: a grain of 8 rows holds no tile of 16");
  CHECK(complaint({.chunk = -8, .grains = grains}) ==
        "plan: chunk is -8; it is 0, which leaves it out, or at most 17592186044416");
  CHECK(complaint({.stage = -1, .grains = grains}) ==
        "plan: stage is -1; it is 0, which leaves it out, or at most 68719476736");
  const auto rows = linear(8, 5);
  CHECK(complaint([&] { planner_of<decltype(rows)>(rows, samples, {.grains = grains}); }) ==
        "linear: x has 0 features, the layer takes 8; a model of rows wants plan_options.features, "
        "one of tokens begins with an embedding");
  CHECK(complaint({.features = 19, .grains = grains}) ==
        "plan: the model takes tokens; options.features is for rows");
  const auto any = gelu() | gelu();
  CHECK(complaint([&] { planner_of<decltype(any)>(any, samples, {.grains = grains}); }) ==
        "plan: the model takes rows; options.features says how wide they are");
  CHECK(complaint([] {
          planner_of<model_type>(four, packed({0, position(1) << 62}), {.grains = grains});
        }) ==
        "plan: 4611686018427387904 tokens of up to 19 features; at most 17592186044416 can be "
        "planned for");
  const auto wide = embedding(position(1) << 20, 1) | linear(1, position(1) << 20);
  CHECK(complaint([&] {
          planner_of<decltype(wide)>(wide, packed({0, (position(1) << 40) + 1}), {});
        }) ==
        "plan: 1099511627777 tokens of up to 1048576 features; at most 1099511627776 can be "
        "planned for");
  CHECK(complaint({.context = samples, .context_features = 8, .grains = grains}) ==
        "plan: options.context is given, but no layer reads another stream");
  CHECK(complaint({.budget = std::size_t(-1), .grains = grains}) ==
        "plan: a budget of -1 bytes; it is not negative, and at most 2^63, which is unlimited");
  CHECK(complaint({.grains = {8, position(1) << 40}}) ==
        "plan: a grain of 1099511627776 rows; at most 68719476736");
  CHECK(complaint({.prefix = -1, .grains = grains}) ==
        "plan: prefix is -1; it is 0, which leaves it out, or at most 68719476736");
  CHECK(complaint([] {
          planner_of<model_type>(four, packed({0, 0, 0}), {.grains = grains});
        }) == "plan: the packed samples hold no token");
}

TEST_CASE("choices that the engine could not run are refused in words") {
  CHECK(complaint(plan_choice{{{0, 3}, {4, 9}}, 16, 16, false}) ==
        "plan: a stage of sections 4 to 9 does not follow 3 of 9");
  CHECK(complaint(plan_choice{{{0, 3}, {3, 3}, {3, 9}}, 16, 16, false}) ==
        "plan: a stage of sections 3 to 3 does not follow 3 of 9");
  CHECK(complaint(plan_choice{{{0, 3}, {3, 10}}, 16, 16, false}) ==
        "plan: a stage of sections 3 to 10 does not follow 3 of 9");
  CHECK(complaint(plan_choice{{{0, 3}}, 16, 16, false}) == "plan: stages end at section 3 of 9");
  CHECK(complaint(plan_choice{{}, 16, 16, false}) == "plan: stages end at section 0 of 9");
  CHECK(complaint(plan_choice{{{0, 9, false, true}}, 16, 16, true}) ==
        "plan: a fused head leaves the last stage no forward to keep");
  CHECK(complaint(plan_choice{{{0, 3, false, false, true}, {3, 9}}, 16, 16, false}) ==
        "plan: a stage that keeps its chunk keeps its memory");

  const auto two_halves = mixed();
  planner_of<decltype(two_halves)> halves(two_halves, samples, {.features = 8, .grains = grains});
  CHECK(complaint([&] {
          halves.complete({{{0, 4}}, 16, 16, false});
        }) == "plan: attention (read), section 1, must begin a stage");
  const auto shared = tied();
  planner_of<decltype(shared)> one_table(shared, samples, {.grains = grains});
  CHECK(complaint([&] {
          one_table.complete({{{0, 3}}, 16, 16, true});
        }) == "plan: the head shares a parameter with its own stage; it cannot be fused");
  planner_of<model_type, direct_preference> coupled(four, samples, {.grains = grains});
  CHECK(complaint([&] {
          coupled.complete({{{0, 9}}, 16, 16, true});
        }) == "plan: a coupled loss needs all rows before its gradient; the head cannot be fused");
}

// Plans of more tokens than a machine holds: arithmetic, compared with formulas by hand.
namespace {

__extension__ using wide = __int128;

std::string digits(wide n) {
  std::string text;
  for (; n > 0; n /= 10) text.insert(text.begin(), char('0' + int(n % 10)));
  return text;
}
std::string digits(big_count n) {
  std::ostringstream text;
  text << n;
  return text.str();
}

constexpr position V = 152064, d = 4096, h = 11008;  // vocabulary, width, of the MLP

// The types of blocks(), at the size of a model that people use.
model_type large(position count) {
  return embedding(V, d) |
         repeat(count, residual(rms_norm(d) | causal_attention({.features = d, .heads = 32})) |
                           residual(rms_norm(d) | swiglu(d, h))) |
         rms_norm(d) | linear(d, V);
}

// One block of so wide rows.
model_type blocks_of(position width) {
  return embedding(19, width) |
         repeat(1, residual(rms_norm(width) | causal_attention({.features = width, .heads = 2})) |
                       residual(rms_norm(width) | swiglu(width, 12))) |
         rms_norm(width) | linear(width, 19);
}

// A forward of attention and MLP, T rows and P pairs of a row and one that it sees; with backward.
constexpr wide attention_both(wide T, wide P) { return 24 * T * d * d + 14 * P * d; }
constexpr wide mlp_forward(wide T) { return 6 * T * d * h; }
constexpr wide head_both(wide T) { return 6 * T * d * V; }

wide pairs_of(const packed& samples) {
  wide pairs = 0;
  for (position s = 0; s < samples.segments(); ++s) {
    const wide n = samples.segment(s).rows();
    pairs += n * (n + 1) / 2;
  }
  return pairs;
}

// Of about so many tokens in all.
packed ragged(position number, position tokens) {
  dice draw(29);
  std::vector<position> lengths(static_cast<std::size_t>(number));
  for (position& n : lengths) n = draw(2 * tokens / number);
  return packed_lengths(lengths);
}

}  // namespace

TEST_CASE("2^30 and 2^40 tokens: FLOPs of plain backpropagation and of checkpointing") {
  for (const packed& samples : {packed::one(position(1) << 30), packed::one(position(1) << 40),
                                packed::one((position(1) << 40) - 12345),
                                ragged(1000, position(1) << 30), ragged(1000, position(1) << 40)}) {
    const wide T = samples.tokens(), P = pairs_of(samples);
    CAPTURE(samples.tokens());
    planner_of<model_type> all(large(2), samples, {});
    const step_plan plain = all.plain();
    const wide once = 2 * (attention_both(T, P) + 3 * mlp_forward(T)) + head_both(T);
    CHECK(digits(plain.flops) == digits(once));
    CHECK(plain.chunk_count() == 1);

    // Stages of the embedding with an attention, an MLP, an attention, an MLP. A replay leaves out
    // the product that gives the stage's result.
    const step_plan p = all.complete({{{0, 2}, {2, 3}, {3, 4}, {4, 5}}, 4096, 512, false});
    const wide again = 2 * (6 * T * d * d + 4 * P * d) + 2 * 4 * T * d * h;
    CHECK(digits(p.flops) == digits(once + again));
    CHECK(p.largest_chunk() == 4096);
    CHECK(p.largest_head_chunk() == 512);
    if (samples.segments() == 1) {
      CHECK(p.chunk_count() == ceil_div(samples.tokens(), 4096));
      CHECK(p.head_chunks.parts() == ceil_div(samples.tokens(), 512));
    }
  }
}

TEST_CASE("2^30 and 2^40 tokens: bytes grow by what each token takes") {
  planner_of<model_type> short_one(large(2), packed::one(1 << 16), {});
  for (const bool fuses : {false, true}) {
    const plan_choice choice{{{0, 2}, {2, 4}, {4, 5}}, 4096, 1024, fuses};
    const step_plan before = short_one.complete(choice);
    for (const int power : {30, 40}) {
      const auto T = std::size_t(1) << power, more = T - (1 << 16);
      planner_of<model_type> all(large(2), packed::one(position(T)), {});
      const step_plan p = all.complete(choice);
      CHECK(p.bytes.packing == before.bytes.packing);
      CHECK(p.bytes.checkpoints == 2 * T * d * 8);
      CHECK(p.bytes.stream == T * d * 8);
      CHECK(p.bytes.kept == 0);
      // A grain of so wide a head is a tile.
      // Besides, one sample's scale, and of the 1024 rows of a head chunk one target each, 96 bytes,
      // and where the last of them ends.
      CHECK(p.bytes.sums == (T / 64 + 1) * 8 / 64 * 64 + 64 + 64 + 1024 * 96 + 64);
      // Keys, values and their gradients of one stage.
      CHECK(p.bytes.region == before.bytes.region + 4 * more * d * 8);
      CHECK(p.chunk_count() == position(T / 4096));
      CHECK(p.head_chunks.parts() == position(T / 1024));
      CHECK(p.seal != before.seal);
    }
  }
}

TEST_CASE("2^40 tokens: the fastest plans for large and for small budgets, and the least") {
  const packed samples = packed::one(position(1) << 40);
  const std::size_t row = (std::size_t(1) << 40) * d * 8;  // a number wide, of all tokens
  const auto searched = [&](plan_options o, bool smallest = false) {
    return planner_of<model_type>(large(4), samples, o).search(smallest);
  };
  const step_plan least = *searched({}, true), free = *searched({}),
                  some = *searched({.budget = least.peak() + 3 * row});
  // The stream, and of one block keys, values and their gradients, or a checkpoint for it.
  CHECK(least.peak() > 6 * row);
  CHECK(least.peak() < 10 * row);
  CHECK(some.peak() <= least.peak() + 3 * row);
  CHECK(least.flops >= some.flops);
  CHECK(some.flops >= free.flops);
  CHECK_FALSE(searched({.budget = least.peak() - 64}).has_value());
}

TEST_CASE("2^63 bytes and more are no plan") {
  // Plain backpropagation of 64 blocks passes 2^63 bytes; plans exist, and its FLOPs are known.
  const wide T = wide(1) << 40;
  planner_of<model_type> all(large(64), packed::one(position(T)),
                             {.chunk = 4096, .stage = 1, .keep = false});
  const step_plan plain = all.plain();
  CHECK(plain.peak() == uncountable);
  CHECK(digits(plain.flops) ==
        digits(64 * (attention_both(T, T * (T + 1) / 2) + 3 * mlp_forward(T)) + head_both(T)));
  CHECK(all.search()->peak() < unlimited);

  const auto wide_rows = blocks_of(position(1) << 16);
  CHECK_FALSE(planner_of<model_type>(wide_rows, packed::one(most_tokens), {}).search().has_value());
  CHECK(planner_of<model_type>(wide_rows, packed::one(most_tokens), {}).search(true)->peak() ==
        uncountable);
}
