// Law: a sample's results are the same bits whatever it is packed with; the gradients of a packed
// batch are the sum of its samples' own, to rounding.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

// One sample's data alone.
inline given alone(const given& all, position sample) {
  const row_range own = all.samples.segment(sample);
  const position n = all.samples.tokens();
  given d = all;
  d.samples = packed::one(own.rows());
  d.ids = {all.ids[std::size_t(sample)]};
  const auto take = [](auto& v, position rows, row_range range) {
    const position cols = rows == 0 ? 0 : position(v.size()) / rows;
    v = {v.begin() + range.first * cols, v.begin() + range.last * cols};
  };
  const auto cut = [&](auto& v) { take(v, n, own); };
  if (all.beside.tokens() > 0) {
    const row_range beside = all.beside.segment(sample);
    d.beside = packed::one(beside.rows());
    take(d.context, all.beside.tokens(), beside);
  }
  cut(d.rows);
  cut(d.tokens);
  cut(d.c);
  cut(d.labels);
  cut(d.weights);
  return d;
}

// A loss gets a normaliser, as within an accumulation window.
inline void check_batch_independence(report& r, subject& of, given data, const step_plan& plan,
                                     const tolerance& allow) {
  const double allowed = allow.rounding * of.epsilon();
  if (of.scores) data.normaliser = 16;
  const outcome together = of.run(plan)->step(data);
  const packed& samples = data.samples;
  outcome sum = together;
  sum.value = 0;
  for (tensor& t : sum.tensors) std::fill(t.data.begin(), t.data.end(), 0.0);
  const double least = allow.smallest * together.largest_gradient();
  double magnitude = 0;
  for (position s = 0; s < samples.segments(); ++s) {
    const row_range own = samples.segment(s);
    if (own.rows() == 0) continue;
    const given d = alone(data, s);
    if (of.split.crosses && d.beside.tokens() == 0) continue;  // sees nothing: 0 in every sum
    const outcome o = of.run(of.streamed(d.samples, d.prefix, d.beside))->step(d);
    sum.value += o.value;
    magnitude += std::abs(o.value);
    for (std::size_t k = 0; k < o.tensors.size(); ++k) {
      const tensor& from = o.tensors[k];
      const position first = from.by_token()                     ? own.first
                             : from.kind == tensor_kind::context ? data.beside.segment(s).first
                                                                 : 0;
      double* const to = sum.tensors[k].data.data() + first * from.cols;
      for (std::size_t i = 0; i < from.data.size(); ++i) to[i] += from.data[i];
    }
  }
  if (!(std::abs(sum.value - together.value) <= allowed * magnitude))
    r.add(law::batch_independence,
          sentence("samples alone sum to ", sum.value, ", packed they give ", together.value));
  for (std::size_t k = 0; k < sum.tensors.size(); ++k) {
    const tensor &a = sum.tensors[k], &b = together.tensors[k];
    const auto where = a.kind == tensor_kind::output
                           ? other_bits(a, b, samples, [](position) { return true; })
                           : beyond(a, b, allowed, least, samples);
    if (!where.empty())
      r.add(law::batch_independence, sentence("packed, ", where, " as in each sample alone"));
  }
}

}  // namespace streambp::laws
