// Steps whose memories lie in a store, which lends rows by range and takes them back, have the bits
// of steps in the arena: attention that is lent some keys and values at a time, and layers that ask
// for all of them.
#include <streambp/engine/engine.hpp>

#include <cmath>
#include <streambp/laws/engine_subject.hpp>

#include "../engine/elsewhere.hpp"
#include "../engine/trial.hpp"

using namespace streambp;

namespace {

const geometry grains{8, 16};

// Steps, and their values alone, under several plans, in the arena and in stores that lend several
// numbers of rows at a time.
template <class Scalar, class Model>
void same_bits_from_a_store(const Model& model, const packed& samples, plan_options o,
                            bool in_blocks = true) {
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
    for (const position rows : {-1, 0, 5, 100, 192, 100000}) {
      INFO("plan: ", in_words(p), ", rows ", rows);
      auto e = t.engine_for(p);
      elsewhere<Scalar> store(e.block(), rows);
      if (rows >= 0) e.keep_memories_in(&store);
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
      if (rows < 0) CHECK(laws::allocations == asked);
      CHECK(e.flops() == p.flops);
      CHECK(store.open() == 0);
      CHECK(e.value(t.parameters, data) == out.value);
      std::vector<Scalar> all = out.gradient;
      for (const auto* more : {&out.d_rows, &out.d_initial, &d_other})
        all.insert(all.end(), more->begin(), more->end());
      CHECK(std::all_of(all.begin(), all.end(), [](Scalar x) { return std::isfinite(x); }));
      if (first.empty()) first = all, value = out.value;
      CHECK(same_bits(all, first));
      CHECK(std::memcmp(&value, &out.value, sizeof value) == 0);
      CHECK(store.open() == 0);
      CHECK(store.faults == 0);
      CHECK((store.loans > 0) == (rows >= 0));
      // Blocks, or a chunk's own rows.
      if (rows > 0 && in_blocks)
        CHECK(store.most_rows <= std::max({rows + attention_shape{}.block_keys(), p.largest_chunk(),
                                           p.largest_context_chunk()}));
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
      same_bits_from_a_store<float>(model, samples, {.features = 12});
      same_bits_from_a_store<double>(model, samples, {.features = 12, .prefix = 30});
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
                   CHECK(dk.rows == memory.rows.rows());
                   CHECK(dv.rows == memory.rows.rows());
                   for (position i = 0; i < dk.rows; ++i) dk(i, 3) += 1, dv(i, 20) += 2;
                 });
  }
  // One for each chunk that was shown the row.
  void release(auto& at, auto, auto dx) const {
    add(at.on, at.d_own(k), dx);
    const double times = at.chunk.rows.last <= 48 ? 3 : at.chunk.rows.last <= 96 ? 2 : 1;
    for (position i = 0; i < at.rows(); ++i) {
      CHECK(at.d_own(k)(i, 3) == times);
      CHECK(at.d_own(v)(i, 20) == 2 * times);
    }
  }
};

}  // namespace

TEST_CASE("a layer that walks is lent as many rows at a time as the store says") {
  int blocks = 0;
  const auto t =
      trial_of<double>(linear(12, 12) | walking{&blocks} | linear(12, 7), cross_entropy{},
                       packed::one(100), {.features = 12, .grains = grains});
  auto e = t.engine_for(t.planner_for().complete({{{0, 2, true, true, false}}, 48, 48, false}));
  for (const auto& [rows, expected] :
       {std::pair{0, 3}, {1000, 3}, {20, 3 + 5 + 5}, {96, 1 + 1 + 2}}) {
    elsewhere<double> store(e.block(), rows);
    e.keep_memories_in(&store);
    blocks = 0;
    std::vector<double> gradient(std::size_t(t.list.table.gradients));
    e.add_gradient(t.parameters, t.data(), gradient);
    CHECK(blocks == 2 * expected + expected);
  }
}

namespace {

// Asks for all rows, in every way there is. Of what remember writes a part is read again.
template <reach Sees>
struct soft_mean {
  static constexpr tag<"w"> w{};
  static constexpr tag<"k"> k{};
  static constexpr tag<"v"> v{};
  static constexpr auto sees = Sees;
  static constexpr bool backward_reads_output = false;

  auto slots(position in) const {
    return std::tuple{parameter(w, in, in, {0, 0.3}), memory(k, in), memory(v, in)};
  }
  void remember(auto& at, auto x) const {
    project(at.on, x, at[w], at.own(at[k]));
    sum(at.on, x, view<const typename std::decay_t<decltype(at)>::scalar>(at.own(k)), at.own(v));
  }
  template <class F>
  static void for_seen(const piece& p, position t, const F& f) {
    double n = 0;
    const auto ranges = Sees == reach::all ? p.seen : p.past(t);
    for (const row_range r : ranges) n += double(r.rows());
    for (const row_range r : ranges)
      for (position s = r.first; s < r.last; s += 7) f(s, 1 / n);
  }
  void forward(auto& at, auto x, auto y) const {
    if (!at.wants_output) return;
    zero(at.on, y);
    for (const piece p : at.pieces())
      for (position t = p.row; t < p.last(); ++t)
        for_seen(p, t, [&](position s, double share) {
          for (position j = 0; j < x.cols; ++j)
            y(t, j) += std::tanh(x(t, j) + at[k](s, j)) * at[v](s, j) * share;
        });
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    at.pieces().descending([&](const piece& p) {
      for (position t = p.last(); t-- > p.row;)
        for_seen(p, t, [&](position s, double share) {
          for (position j = 0; j < x.cols; ++j) {
            const auto z = std::tanh(x(t, j) + at[k](s, j));
            const auto dz = dy(t, j) * share * at[v](s, j) * (1 - z * z);
            dx(t, j) += dz;
            at.d(k)(s, j) += dz;
            at.d(v)(s, j) += dy(t, j) * share * z;
          }
        });
    });
  }
  void release(auto& at, auto x, auto dx) const {
    const auto dk = at.own(at.d(k)), dv = at.d_own(v);
    add(at.on, dv, dk);
    add(at.on, dv, dx);
    if (at.trains(w)) add_weight_gradient(at.on, dk, x, at.d(w), at.grains());
    project_back(at.on, dk, at[w], dx, write::add);
  }
};

}  // namespace

TEST_CASE("a layer that asks for all of a memory is lent all, until its call is done") {
  const auto model = residual(soft_mean<past>{}) | block(causal_attention({.features = 12})) |
                     residual(soft_mean<all>{}) | linear(12, 7);
  same_bits_from_a_store<float>(model, packed_lengths({60, 3, 40}), {.features = 12}, false);
  same_bits_from_a_store<double>(model, family, {.features = 12, .prefix = 10}, false);
}

namespace {

struct own_then_all : soft_mean<past> {
  void remember(auto& at, auto x) const {
    copy(at.on, x, at.own(v));
    copy(at.on, x, at.own(at[v]));
  }
};

}  // namespace

TEST_CASE("all of a memory cannot be had beside the part that a call holds") {
  const auto t = trial_of<double>(own_then_all{} | linear(12, 7), cross_entropy{}, packed::one(20),
                                  {.features = 12, .grains = grains});
  auto e = t.engine_for(t.planner_for().complete({{{0, 1, true, false, false}}, 8, 8, false}));
  elsewhere<double> store(e.block(), 8);
  e.keep_memories_in(&store);
  CHECK_THROWS_WITH_AS(
      e.value(t.parameters, t.data()),
      "layer: a call asks for rows [0, 20) of a memory, of which it holds a part already; ask for "
      "at[tag] or at.d(tag) before at.own(tag) or at.d_own(tag)",
      error);
  CHECK(store.open() == 0);
}

TEST_CASE("keys and values may come in blocks: both halves of a bidirectional read") {
  const auto model = block(bidirectional_attention({.features = 12, .heads = 2, .bias = true})) |
                     block(bidirectional_attention({.features = 12, .heads = 2})) | linear(12, 7);
  same_bits_from_a_store<float>(model, ragged, {.features = 12});
  same_bits_from_a_store<double>(model, ragged, {.features = 12, .prefix = 30});
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
    same_bits_from_a_store<float>(model, samples, {.features = 12});
    same_bits_from_a_store<double>(model, samples, {.features = 12, .prefix = 30});
  }
}

TEST_CASE("keys and values may come in blocks: those of another stream") {
  const auto model = block(cross_attention({.features = 12, .context_features = 5, .heads = 2})) |
                     block(causal_attention({.features = 12, .heads = 2})) | linear(12, 7);
  for (const auto& lengths : {std::vector<position>{210, 2, 31, 0, 9, 80}, {0, 0, 0, 7, 0, 0}}) {
    plan_options o{.features = 12};
    o.context = packed_lengths(lengths);
    o.context_features = 5;
    same_bits_from_a_store<float>(model, ragged, o);
  }
}
