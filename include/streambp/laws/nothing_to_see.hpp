// Law: rows with nothing to see and empty samples give finite rows, 0 where nothing flows in; a
// batch with nothing to score gives value 0 and gradients that are 0.
#pragma once

#include "subject.hpp"

namespace streambp::laws {

inline std::string not_finite(const outcome& o, const packed& samples) {
  for (const tensor& t : o.tensors)
    for (std::size_t i = 0; i < t.data.size(); ++i)
      if (!std::isfinite(t.data[i])) return sentence(place_of(t, i, samples), " is ", t.data[i]);
  return std::isfinite(o.value) ? "" : sentence("the value is ", o.value);
}

// A result that is no number at a sample's first token is one of nothing to see; any other number
// is missed where it stands.
inline void check_finite(report& r, const outcome& o, const given& data, const step_plan& plan) {
  const auto where = not_finite(o, data.samples);
  if (where.empty()) return;
  bool at_first = false;
  for (position s = 0; s < data.samples.segments() && !at_first; ++s)
    for (const tensor& t : o.tensors)
      if (const row_range own = data.samples.segment(s);
          t.kind == tensor_kind::output && own.rows() > 0)
        for (position j = 0; j < t.cols; ++j)
          at_first |= !std::isfinite(t.data[std::size_t(own.first * t.cols + j)]);
  r.add(at_first ? law::nothing_to_see : law::finite, sentence(where, "; ", words(plan)));
}

// Of a loss: no label counts.
inline void check_nothing_scored(report& r, subject& of, given data, const step_plan& plan) {
  std::fill(data.labels.begin(), data.labels.end(), of.ignored);
  const outcome o = of.run(plan)->step(data);
  if (!of.couples && o.value != 0)
    r.add(law::nothing_to_see, sentence("with nothing to score the value is ", o.value));
  for (const tensor& t : o.tensors)
    for (std::size_t i = 0; i < t.data.size(); ++i)
      if (t.data[i] != 0)
        r.add(law::nothing_to_see,
              sentence("with nothing to score ", place_of(t, i, data.samples), " is ", t.data[i]));
}

// Of a loss: the row of a sample's last token predicts nothing; what it holds is not touched.
inline void check_untouched(report& r, subject& of, given data, const step_plan& plan) {
  const double before = of.run(plan)->value(data);
  for (position s = 0; s < data.samples.segments(); ++s)
    if (const row_range own = data.samples.segment(s); own.rows() > 0)
      for (position j = 0; j < of.features; ++j)
        data.rows[std::size_t((own.last - 1) * of.features + j)] = std::nan("");
  const double after = of.run(plan)->value(data);
  if (!same_bits(before, after))
    r.add(law::nothing_to_see,
          sentence("with NaN in rows that predict nothing the value is ", after, ", not ", before));
}

}  // namespace streambp::laws
