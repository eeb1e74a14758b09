// Attention that is lent keys and values some rows at a time has the bits of attention that sees
// all at once, through whole steps.
#include <streambp/engine/engine.hpp>

#include <cmath>
#include <streambp/laws/engine_subject.hpp>

#include "../engine/trial.hpp"

using namespace streambp;

namespace {

const geometry grains{8, 16};

// Steps, and their values alone, under several plans and with several numbers of rows at a time.
template <class Scalar, class Model>
void same_bits_from_blocks(const Model& model, const packed& samples, plan_options o) {
  o.grains = grains;
  o.input_gradient = true;
  const auto t = trial_of<Scalar>(model, cross_entropy{}, samples, o);
  const position context = o.context_features > 0 ? o.context.tokens() : 0;
  std::vector<Scalar> other;
  for (position i = 0; i < context * o.context_features; ++i)
    other.push_back(Scalar(laws::wave(i, 3)));

  std::vector<Scalar> first, d_other;
  double value = 0;
  auto one = t.planner_for(1), two = t.planner_for(2);
  plan_choice small = one.plain().choice;
  small.chunk = 16;
  for (const step_plan& p : {one.plain(), one.checkpointing(), two.complete(small)})
    for (const position rows : {0, 5, 100, 192, 100000}) {
      INFO("plan: ", in_words(p), ", rows ", rows);
      auto e = t.engine_for(p);
      e.lend_memory_rows(rows);
      outcome<Scalar> out;
      out.gradient.assign(std::size_t(t.list.table.gradients), Scalar(0));
      batch<Scalar> data = t.data(out);
      d_other.assign(other.size(), Scalar(0));
      if (context > 0) {
        data.context = {other.data(), context, o.context_features};
        data.d_context = {d_other.data(), context, o.context_features};
      }
      poison(e);
      e.reset_flops();
      const std::int64_t asked = laws::allocations;
      out.value = e.add_gradient(t.parameters, data, out.gradient);
      CHECK(laws::allocations == asked);
      CHECK(e.flops() == p.flops);
      CHECK(e.value(t.parameters, data) == out.value);
      std::vector<Scalar> all = out.gradient;
      for (const auto* more : {&out.d_rows, &out.d_initial, &d_other})
        all.insert(all.end(), more->begin(), more->end());
      for (const Scalar x : all) REQUIRE(std::isfinite(x));
      if (first.empty()) first = all, value = out.value;
      CHECK(same_bits(all, first));
      CHECK(std::memcmp(&value, &out.value, sizeof value) == 0);
    }
}

auto block(auto attention) { return residual(rms_norm(12) | attention) | residual(swiglu(12, 8)); }

const packed ragged = packed_lengths({3, 0, 260, 1, 1, 70}),
             family({0, 215, 220, 221, 300, 330}, {-1, 0, 0, 0, -1});

}  // namespace

TEST_CASE("keys and values may come in blocks: causal attention, with all that belongs to it") {
  const attention_options plain{.features = 12, .heads = 2, .kv_heads = 1, .rotary = 100},
      window{.features = 12, .heads = 3, .window = 50, .softcap = 3, .sinks = true};
  for (const attention_options& a : {plain, window})
    for (const packed& samples : {ragged, family}) {
      const auto model =
          block(causal_attention(a)) | block(causal_attention(plain)) | linear(12, 7);
      same_bits_from_blocks<float>(model, samples, {.features = 12});
      same_bits_from_blocks<double>(model, samples, {.features = 12, .prefix = 30});
    }
}

namespace {

// Counts the blocks that it is lent in forward and backward.
struct walking {
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr auto sees = past;
  static constexpr bool backward_reads_input = false, backward_reads_output = false;
  int* blocks;

  auto slots(position in) const { return std::tuple{memory(k, in), memory(v, 2 * in)}; }
  void remember(auto& at, auto x) const {
    copy(at.on, x, at.own(k));
    zero(at.on, at.own(v));
  }
  void forward(auto& at, auto x, auto y) const {
    copy(at.on, x, y);
    at.walk(attention_shape{.tile = at.chunk.tile}, at.pieces(), k, v, [&](const auto& memory) {
      ++*blocks;
      // Row after row, from the first one lent: what it remembered.
      const position last = at.chunk.prefix + at.chunk.rows.last;
      for (position row = memory.rows.first; row < std::min(memory.rows.last, last); ++row) {
        const position i = row - last + at.rows();
        if (i >= 0) CHECK(memory.k(row - memory.rows.first, 3) == x(i, 3));
        CHECK(memory.v(row - memory.rows.first, 20) == 0);
      }
    });
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    add(at.on, dy, dx);
    at.walk_back(attention_shape{.tile = at.chunk.tile}, at.pieces(), k, v,
                 [&](const auto& memory, auto dk, auto dv) {
                   ++*blocks;
                   CHECK(dk.data == at.d(k).row(memory.rows.first));
                   CHECK(dv.data == at.d(v).row(memory.rows.first));
                   CHECK(dk.rows == memory.rows.rows());
                   CHECK(dv.rows == memory.rows.rows());
                 });
  }
  void release(auto& at, auto, auto dx) const { add(at.on, at.d_own(k), dx); }
};

}  // namespace

TEST_CASE("a layer is lent as many rows at a time as the engine is told to lend") {
  int blocks = 0;
  const auto t =
      trial_of<double>(linear(12, 12) | walking{&blocks} | linear(12, 7), cross_entropy{},
                       packed::one(100), {.features = 12, .grains = grains});
  auto e = t.engine_for(t.planner_for().complete({{{0, 2, true, true, false}}, 48, 48, false}));
  for (const auto& [rows, expected] :
       {std::pair{0, 3}, {1000, 3}, {20, 3 + 5 + 5}, {96, 1 + 1 + 2}}) {
    e.lend_memory_rows(rows);
    blocks = 0;
    std::vector<double> gradient(std::size_t(t.list.table.gradients));
    e.add_gradient(t.parameters, t.data(), gradient);
    CHECK(blocks == 2 * expected + expected);
  }
}

TEST_CASE("keys and values may come in blocks: both halves of a bidirectional read") {
  const auto model = block(bidirectional_attention({.features = 12, .heads = 2, .bias = true})) |
                     block(bidirectional_attention({.features = 12, .heads = 2})) | linear(12, 7);
  same_bits_from_blocks<float>(model, ragged, {.features = 12});
  same_bits_from_blocks<double>(model, ragged, {.features = 12, .prefix = 30});
}

namespace {

// One memory is keys and values; queries are not kept, and are used again.
struct derived_reads {
  static constexpr tag<"w"> w{};
  static constexpr tag<"u"> u{};
  static constexpr tag<"c"> c{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr auto sees = past;
  auto slots(position in) const {
    return std::tuple{parameter(w, in, in, {0, 0.3}), memory(c, in), parameter(u, in, in, {0, 0.3}),
                      memory(v, in), memory(k, in)};
  }
  void remember(auto& at, auto x) const {
    at.write(c, x + tanh(x));
    at.write(k, x * x);
    at.write(v, matmul(x, at[u]));
  }
  auto forward(auto& at, auto x) const {
    const auto q = tanh(matmul(x, at[w]));
    const auto one = attend(q, at[c], at[c], {.heads = 2});
    return attend(one * q, at[k], at[v], {.heads = 3, .softcap = 2, .window = 20}) + one;
  }
};

}  // namespace

TEST_CASE("keys and values may come in blocks: where the backward is derived") {
  const auto model = residual(derived_reads{}) | residual(derived_reads{}) | linear(12, 7);
  for (const packed& samples : {ragged, family}) {
    same_bits_from_blocks<float>(model, samples, {.features = 12});
    same_bits_from_blocks<double>(model, samples, {.features = 12, .prefix = 30});
  }
}

TEST_CASE("keys and values may come in blocks: those of another stream") {
  const auto model = block(cross_attention({.features = 12, .context_features = 5, .heads = 2})) |
                     block(causal_attention({.features = 12, .heads = 2})) | linear(12, 7);
  for (const auto& lengths : {std::vector<position>{210, 2, 31, 0, 9, 80}, {0, 0, 0, 7, 0, 0}}) {
    plan_options o{.features = 12};
    o.context = packed_lengths(lengths);
    o.context_features = 5;
    same_bits_from_blocks<float>(model, ragged, o);
  }
}
