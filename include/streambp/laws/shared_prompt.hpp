// Law: completions behind a prompt that they share give what full samples give that each repeat it,
// to rounding; and the same bits under every plan.
#pragma once

#include "plan_independence.hpp"

namespace streambp::laws {

// A prompt of three chunks, three completions, of one token, of none and of two chunks, and a
// sample that shares nothing.
inline packed sharing_samples(const geometry& g) {
  const position prompt = 2 * g.grain + 5, completion = g.grain + 3;
  return packed(
      {0, prompt, prompt + 1, prompt + 1, prompt + 1 + completion, prompt + completion + 8},
      {-1, 0, 0, 0, -1});
}

// The same as full samples, and which row of the shared ones each of their rows repeats.
struct full_samples {
  packed samples;
  std::vector<position> repeats;
  std::vector<position> segment;  // of the shared ones, by full sample

  explicit full_samples(const packed& shared) {
    std::vector<position> offsets{0};
    for (position s = 0; s < shared.segments(); ++s) {
      if (shared.parent_number(s) >= 0) continue;
      segment.push_back(s);
      if (shared.parent(s) >= 0) repeat(shared.segment(shared.parent(s)));
      repeat(shared.segment(s));
      offsets.push_back(position(repeats.size()));
    }
    samples = packed(offsets);
  }

 private:
  void repeat(const row_range& rows) {
    for (position t = rows.first; t < rows.last; ++t) repeats.push_back(t);
  }
};

// A row's share of the loss counts in the first sample that repeats it.
inline given unshared(const given& shared, const full_samples& full, position tokens) {
  given d = shared;
  d.samples = full.samples;
  d.ids.clear();
  for (const position s : full.segment) d.ids.push_back(shared.ids[std::size_t(s)]);
  const auto gather = [&](auto& v, bool once) {
    const std::size_t cols = v.size() / std::size_t(tokens);
    std::vector<bool> counted(std::size_t(tokens), false);
    std::decay_t<decltype(v)> rows;
    for (const position t : full.repeats) {
      const auto first = v.begin() + position(std::size_t(t) * cols);
      if (once && counted[std::size_t(t)])
        rows.insert(rows.end(), cols, 0);
      else
        rows.insert(rows.end(), first, first + position(cols));
      counted[std::size_t(t)] = true;
    }
    v = std::move(rows);
  };
  gather(d.rows, false);
  gather(d.tokens, false);
  gather(d.c, true);
  return d;
}

// What full samples gave, in the places of the shared ones: outputs of any that repeats a row,
// gradients of all.
inline outcome folded(outcome o, const full_samples& full, position tokens) {
  for (tensor& t : o.tensors) {
    if (!t.by_token()) continue;
    std::vector<double> rows(std::size_t(tokens * t.cols));
    for (std::size_t i = 0; i < t.data.size(); ++i) {
      const position row = position(i) / t.cols, col = position(i) % t.cols;
      double& to = rows[std::size_t(full.repeats[std::size_t(row)] * t.cols + col)];
      to = t.kind == tensor_kind::output ? t.data[i] : to + t.data[i];
    }
    t.data = std::move(rows);
  }
  return o;
}

// Of a layer whose rows see the past.
inline void check_shared_prompt(report& r, subject& of, const given& data, const tolerance& allow,
                                std::size_t stride) {
  const position tokens = data.samples.tokens();
  const plan_list plans = of.plans(data.samples, data.prefix);
  const outcome plain = of.run(plans.plain)->step(data);
  given other_draws = data;
  other_draws.seed += 1;
  if (!same_bits(plain.value, of.run(plans.plain)->value(other_draws)))
    return;  // each repetition of the prompt would draw its own
  check_plan_independence(r, of, data, plans, plain, stride);

  const full_samples full(data.samples);
  const outcome repeated =
      folded(of.run(of.streamed(full.samples, data.prefix))->step(unshared(data, full, tokens)),
             full, tokens);
  const double allowed = allow.rounding * of.epsilon(),
               least = allow.smallest * plain.largest_gradient();
  for (std::size_t k = 0; k < plain.tensors.size(); ++k)
    if (const auto where =
            beyond(repeated.tensors[k], plain.tensors[k], allowed, least, data.samples);
        !where.empty())
      r.add(law::batch_independence,
            sentence("behind a shared prompt, ", where, " as in samples that repeat it"));
}

}  // namespace streambp::laws
