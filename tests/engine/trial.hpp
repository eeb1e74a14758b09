// A model, a loss and made-up data: one step under a plan, with what must hold of every step.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <streambp/laws/count_allocations.hpp>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

#include "../core/lengths.hpp"
#include "../planner/choices.hpp"

namespace streambp {

template <class Scalar>
bool same_bits(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Scalar)) == 0;
}

template <class Scalar>
struct outcome {
  double value = 0;
  std::vector<Scalar> gradient, d_rows, d_initial;
};

template <class Scalar>
bool same_bits(const outcome<Scalar>& a, const outcome<Scalar>& b) {
  return std::memcmp(&a.value, &b.value, sizeof a.value) == 0 &&
         same_bits(a.gradient, b.gradient) && same_bits(a.d_rows, b.d_rows) &&
         same_bits(a.d_initial, b.d_initial);
}

inline std::string in_words(const step_plan& p) {
  std::string all =
      sentence("chunk ", p.choice.chunk, ", head chunk ", p.choice.head_chunk, ", carries ",
               p.choice.carry_interval, p.choice.fuses_head ? ", fused" : "", ", ", p.shape.threads,
               " threads,");
  for (const stage_plan& s : p.choice.stages)
    all += sentence(" [", s.first, ", ", s.last, ")", s.keeps_memory ? "m" : "",
                    s.keeps_outputs ? "o" : "", s.keeps_chunk ? "c" : "");
  return all;
}

template <class List>
bool carries(const List& list, const stage_plan& s) {
  for (position i = s.first; i < s.last; ++i)
    if (list.sections[std::size_t(i)].split.carries) return true;
  return false;
}

// What a step does, read off its plan: each sweep over the chunks that it visits, in its direction.
template <class List>
std::vector<trace_event> expected_trace(const List& list, const step_plan& p) {
  std::vector<trace_event> all;
  for (const sweep& s : p.sweeps) {
    if (s.kind == sweep_kind::tally) continue;  // of sums: it visits no chunk
    const bool head = s.kind == sweep_kind::head || s.kind == sweep_kind::summarise;
    const bool down = head || s.kind == sweep_kind::descend;
    const auto& edges = head ? p.head_chunks : p.chunks;
    const position chunks = edges.parts() - (s.kind == sweep_kind::rebuild);
    for (position i = 0; i < chunks; ++i) {
      const position c = down ? chunks - 1 - i : i;
      all.push_back({s, edges.part(c)});
      // Where an interval of chunks ends, its carries come first.
      const position interval = p.choice.carry_interval;
      if (s.kind != sweep_kind::descend || interval == 1 || i == 0 || (c + 1) % interval != 0 ||
          !carries(list, p.choice.stages[std::size_t(s.stage)]))
        continue;
      for (position r = c + 1 - interval; r < c; ++r)
        all.push_back({{sweep_kind::refill, s.stage}, edges.part(r)});
    }
  }
  return all;
}

// Every byte of the arena and of the ledger becomes 0xff, which is NaN wherever it is read as a
// number.
template <class Engine>
void poison(const Engine& e) {
  for (const auto own : {e.block(), e.ledger_block()})
    std::memset(const_cast<std::byte*>(own.data()), 0xff, own.size());
}

// What a trial gives one head of several; labels of none: the trial's.
struct head_labels {
  std::vector<std::int32_t> labels{};
  double factor = 1;
};

// Whether anything is scored, by some loss of the list.
template <class Loss, class Scalar>
bool counts_something(const Loss& loss, const packed& samples, const batch<Scalar>& data) {
  bool any = false;
  position head = 0;
  std::apply(
      [&](const auto&... own) {
        ((any = share_of_window(own, samples, data.of_head(head++)) > 0 || any), ...);
      },
      loss_list<Loss>::of(loss));
  return any;
}

template <class Scalar, class Model, class Loss>
struct trial {
  using engine_type = engine<Scalar, Model, Loss>;
  using planner_type = planner<cpu::device<Scalar>, Model, Loss>;

  Model model;
  Loss loss;
  packed samples;
  plan_options options;
  instance_list<Model> list;
  std::vector<Scalar> parameters, rows, initial, weights;
  std::vector<std::int32_t> tokens, labels;
  std::vector<std::uint64_t> sample_ids;
  std::vector<head_labels> heads;
  mutable std::vector<head_batch<Scalar>> head_batches;
  std::uint64_t seed = 5, step_number = 3;
  double normaliser = 0;

  // Every fifth label does not count.
  trial(Model m, Loss l, packed s, plan_options o)
      : model(std::move(m)),
        loss(std::move(l)),
        samples(std::move(s)),
        options(std::move(o)),
        list(model, options.features) {
    dice draw(7);
    const auto near = [&](double mean, double width) {
      return Scalar(mean + width * (double(draw(2001)) / 1000 - 1));
    };
    const auto n = std::size_t(samples.tokens());
    for (const auto& e : list.table.entries)
      for (position i = 0; i < e.size(); ++i)
        parameters.push_back(near(e.initial.mean == 1 ? 1 : 0, 0.5));
    const position vocabulary = list.takes_tokens() ? list.table.entries[0].rows : 0;
    for (std::size_t t = 0; t < n; ++t) {
      if (list.takes_tokens()) tokens.push_back(std::int32_t(draw(vocabulary)));
      labels.push_back(draw(5) == 0 ? -100 : std::int32_t(draw(list.heads.front().out)));
    }
    if (!list.takes_tokens())
      for (position i = 0; i < samples.tokens() * options.features; ++i) rows.push_back(near(0, 1));
    for (position i = list.initial_size(options.prefix); i-- > 0;) initial.push_back(near(0, 1));
  }

  planner_type planner_for(int threads = 1) const {
    plan_options o = options;
    o.threads = threads;
    return {model, samples, o};
  }
  engine_type engine_for(const step_plan& p) const { return {typed_plan<Scalar>{p}, model, loss}; }

  batch<Scalar> data() const {
    batch<Scalar> b;
    b.tokens = tokens;
    b.labels = labels;
    if (!rows.empty()) b.rows = {rows.data(), samples.tokens(), options.features};
    b.weights = weights;
    b.initial = initial;
    b.sample_ids = sample_ids;
    b.seed = seed;
    b.step = step_number;
    b.normaliser = normaliser;
    head_batches.clear();
    for (const head_labels& h : heads)
      head_batches.push_back({.labels = h.labels, .factor = h.factor});
    b.heads = head_batches;
    return b;
  }
  // With places for the gradients of the input, if the plan has any.
  batch<Scalar> data(outcome<Scalar>& into) const {
    batch<Scalar> b = data();
    if (!options.input_gradient) return b;
    into.d_rows.assign(rows.size(), Scalar(0));
    into.d_initial.assign(initial.size(), Scalar(0));
    if (!rows.empty()) b.d_rows = {into.d_rows.data(), samples.tokens(), options.features};
    b.d_initial = into.d_initial;
    return b;
  }

  // One step in an arena full of poison.
  outcome<Scalar> step(const step_plan& p) const {
    INFO("plan: ", in_words(p));
    engine_type e = engine_for(p);
    CHECK(e.high_water() == p.peak());
    CHECK(e.block().size() + e.ledger_block().size() == p.peak());
    outcome<Scalar> out;
    out.gradient.assign(std::size_t(list.table.gradients), Scalar(0));
    const batch<Scalar> b = data(out);

    std::vector<trace_event> events;
    // Where no label counts nothing runs.
    const bool counts = counts_something(loss, samples, b);
    const auto expected = counts ? expected_trace(list, p) : std::vector<trace_event>{};
    events.reserve(expected.size() + 1000);
    e.trace(&events);
    poison(e);
    e.reset_flops();
    const std::int64_t before = laws::allocations;
    out.value = e.add_gradient(parameters, b, out.gradient);
    const std::int64_t during = laws::allocations - before;
    CHECK(during == 0);
    CHECK(e.flops() == (counts ? p.flops : 0));
    CHECK(events == expected);
    e.trace(nullptr);

    poison(e);
    const std::int64_t again = laws::allocations;
    const double value = e.value(parameters, b);
    CHECK(laws::allocations == again);
    CHECK(std::memcmp(&value, &out.value, sizeof value) == 0);
    return out;
  }
};

template <class Scalar, class Model, class Loss>
trial<Scalar, Model, Loss> trial_of(Model model, Loss loss, packed samples, plan_options options) {
  return {std::move(model), std::move(loss), std::move(samples), std::move(options)};
}

// Every `stride`-th of all choices, the threads in turn, and the planner's own ones.
template <class Scalar, class Model, class Loss>
void every_plan_has_the_same_bits(const trial<Scalar, Model, Loss>& t, const choice_space& space,
                                  position stride) {
  auto one = t.planner_for(1), two = t.planner_for(2);
  const outcome<Scalar> plain = t.step(one.plain());
  REQUIRE(std::isfinite(plain.value));
  for (const Scalar g : plain.gradient) REQUIRE(std::isfinite(g));
  for (const Scalar g : plain.d_rows) REQUIRE(std::isfinite(g));
  for (const Scalar g : plain.d_initial) REQUIRE(std::isfinite(g));

  position number = 0, runs = 0;
  const auto check = [&](const step_plan& p) {
    INFO("plan: ", in_words(p));
    CHECK(same_bits(t.step(p), plain));
    ++runs;
  };
  check(one.checkpointing());
  check(*two.search());
  check(*two.search(true));
  for_each_choice(t.list, space, [&](const plan_choice& c) {
    if (number++ % stride == 0) check((runs % 2 == 0 ? one : two).complete(c));
  });
  MESSAGE(runs, " plans of ", number);
  CHECK(runs > 100);
}

}  // namespace streambp
