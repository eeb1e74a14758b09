// Law: gradients are slopes at zeros, at ties, at initial, tiny and large values, too. Where the
// slopes from both sides agree the gradient equals them; where they differ and are finite it lies
// between; where the value jumps or a slope is infinite nothing is asked.
#pragma once

#include "central_differences.hpp"
#include "nothing_to_see.hpp"

namespace streambp::laws {

// A place to visit: two rows in the midst of others, or parameters as they start.
struct visit {
  const char* words;
  given data;
  std::vector<position> rows;  // that are special
};

inline std::vector<visit> visits_of(const subject& of, const given& data) {
  std::vector<position> chosen;
  for (position s = 0; s < data.samples.segments(); ++s)
    if (const row_range own = data.samples.segment(s); own.rows() > 0)
      chosen.push_back(own.first + std::min<position>(own.rows() - 1, s == 1 ? 0 : 3));
  if (chosen.size() > 3) chosen.resize(3);

  std::vector<visit> all;
  const auto with_rows = [&](const char* words, given d, const auto& entry) {
    for (const position t : chosen)
      for (position j = 0; j < of.features && !d.rows.empty(); ++j)
        d.rows[std::size_t(t * of.features + j)] = of.rounded(entry(t, j));
    all.push_back({words, std::move(d), chosen});
  };
  const auto zero = [](position, position) { return 0.0; };
  given start = data;
  for (const auto& p : of.parameters().entries)
    for (position i = 0; i < p.size(); ++i) {
      double& v = start.parameters[std::size_t(p.offset + i)];
      v = of.rounded(p.initial.mean + p.initial.deviation * wave(i, 71));
    }
  std::fill(start.initial.begin(), start.initial.end(), 0.0);
  all.push_back({"where parameters have their initial values", start, {}});
  if (of.features == 0) return all;
  with_rows("at rows of zeros", data, zero);
  with_rows("at rows of zeros where parameters have their initial values", start, zero);
  with_rows("at rows of equal entries", data, [](position, position) { return 0.5; });
  with_rows("at rows of two values", data,
            [](position, position j) { return j % 3 == 1 ? -0.5 : 0.5; });
  with_rows("at rows of tiny entries", data,
            [](position t, position j) { return 1e-6 * wave(8 * t + j, 72); });
  with_rows("at rows of large entries", data,
            [](position t, position j) { return 40 * wave(8 * t + j, 73); });
  if (of.scores)  // labels that are as good as impossible, and as good as certain
    with_rows("at rows of huge entries", data,
              [](position t, position j) { return 1000 * wave(8 * t + j, 74); });
  return all;
}

// Halvings of a step: from 2e-3 to within the least epsilon of a norm.
inline constexpr int kink_halvings = 36;

inline void check_visit(report& r, subject& of, const visit& v, const step_plan& plan,
                        const tolerance& allow) {
  const auto run = of.run(plan);
  const outcome gradients = run->step(v.data);
  if (!std::isfinite(gradients.value)) return;
  const double terms = size_of_terms(v.data, gradients);
  double least = 0;  // of gradients that are numbers
  for (const tensor& t : gradients.tensors)
    for (const double g : t.data)
      if (t.kind != tensor_kind::output && std::isfinite(g)) least = std::max(least, std::abs(g));
  least *= allow.smallest;

  for (const tensor& t : gradients.tensors) {
    if (t.kind == tensor_kind::output) continue;
    moved_value moved(*run, v.data, t);
    const auto compare = [&](direction way) {
      const double expected = way.along(t);
      const auto value = moved.along(way);
      const auto size = [&](double slope) {
        return std::max({least, std::abs(slope), std::isfinite(expected) ? std::abs(expected) : 0});
      };
      const auto noise = [&](double step) { return allow.value * terms * of.epsilon() / step; };
      const auto near = [&](const slope_estimate& e) {
        const double within = allow.places * size(e.slope) + noise(e.step);
        return within <= allow.kinks * size(e.slope) && std::abs(e.slope - expected) <= within;
      };
      if (near(central_slope(value, near, kink_halvings))) return;
      const slope_estimate above =
                               one_sided_slope(value, gradients.value, first_step, kink_halvings),
                           below =
                               one_sided_slope(value, gradients.value, -first_step, kink_halvings);
      const double most = size(std::max(std::abs(above.slope), std::abs(below.slope)));
      const double slack = above.error + below.error + allow.places * most +
                           noise(std::min(above.step, -below.step));
      if (!(slack <= allow.kinks * most)) return;  // infinite slopes, or a jump: nothing is asked
      if (expected >= std::min(above.slope, below.slope) - slack &&
          expected <= std::max(above.slope, below.slope) + slack)
        return;
      r.add(law::kinks,
            sentence(v.words, ", ", way.words(t, v.data.samples), " is ", expected,
                     ", the slope is ", below.slope, " from below and ", above.slope,
                     " from above: the gradient equals them or lies between, to within ", slack,
                     "; ", words(plan)));
    };
    if (t.kind == tensor_kind::input) {
      for (const position row : v.rows)
        for (const position j : {position(0), of.features - 1})
          compare({std::size_t(row * of.features + j)});
      if (v.rows.empty()) compare({});
    } else {
      compare({});
    }
  }
}

}  // namespace streambp::laws
