// Layers whose state goes on from a shared prompt into each of its completions.
#pragma once

#include "reference.hpp"

namespace streambp {

// Two prompts, of ragged length with three completions (one of them empty) and of whole tiles with
// one.
inline const packed family({0, 11, 16, 16, 33, 49, 70, 75}, {-1, 0, 0, 0, -1, 4, -1});

// The laws of plans and slopes on a family, with and without a state ahead of it; and a completion
// has the bits of one sample that holds its prompt, too.
template <class Layer>
laws::report hold_in_families(const Layer& layer, position features) {
  laws::report r;
  laws::setting s = laws::rows(75, features);
  s.samples = family;
  const auto judge = [&](auto scalar, const char* precision) {
    laws::engine_subject<decltype(scalar), Layer, laws::functional<decltype(scalar)>> engine(layer,
                                                                                             {}, s);
    laws::subject& of = engine;
    of.into = &r;
    r.speak_of(precision);
    for (const bool initial : {false, true}) {
      laws::given data = laws::data_for(of, s, 0);
      if (!initial) data.initial.clear();
      const laws::plan_list plans = of.plans(s.samples, 0);
      const laws::outcome plain = of.run(plans.plain)->step(data);
      laws::check_plan_independence(r, of, data, plans, plain, initial ? 5 : 1);
      if (!of.single) laws::check_differences(r, of, data, plans.streamed, plain, s.allowed);

      const auto step_of = [&](packed samples) {
        data.ids.resize(std::size_t(samples.segments()));
        data.samples = std::move(samples);
        return of.run(of.plans(data.samples, 0).streamed)->step(data);
      };
      const laws::outcome apart = step_of(packed({0, 32, 75}, {-1, 0}));
      const laws::outcome joined = step_of(packed::one(75));
      if (const auto where = laws::other_bits(joined, apart, data.samples); !where.empty())
        r.add(laws::law::batch_independence,
              sentence("a completion apart from its prompt: ", where));
    }
  };
  judge(double{}, "fp64");
  judge(float{}, "fp32");
  return r;
}

}  // namespace streambp
