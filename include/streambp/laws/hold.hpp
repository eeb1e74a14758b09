// Every law of a layer or a loss as one call:
//   CHECK(laws::hold(squared_relu{}, laws::rows(37, 4)));
//   CHECK(laws::hold_loss(cross_entropy{}, laws::rows(37, 6)));
// The report converts to bool and prints which law is broken, where, by how much.
#pragma once

#include "../streambp.hpp"
#include "accumulation.hpp"
#include "batch_independence.hpp"
#include "central_differences.hpp"
#include "declaration.hpp"
#include "engine_subject.hpp"
#include "frozen.hpp"
#include "kinks.hpp"
#include "nothing_to_see.hpp"
#include "plan_independence.hpp"
#include "randomness.hpp"
#include "recomputation.hpp"
#include "shared_prompt.hpp"
#include "single_precision.hpp"
#include "task_order.hpp"

namespace streambp::laws {

// The laws of one subject on one batch; every stride-th plan.
inline void judge(report& r, subject& of, const given& data, const tolerance& allowed,
                  std::size_t stride) {
  const plan_list plans = of.plans(data.samples, data.prefix, data.beside);
  const outcome plain = of.run(plans.plain)->step(data);
  const outcome streamed = of.run(plans.streamed)->step(data);

  check_recomputation(r, of, data, plans.streamed);
  if (!of.reaches_rows)
    r.skip(law::declaration, "the host cannot watch rows in this device's memory");
  else if (!r.breaks(law::recomputation))
    check_watched(r, of, data, plans.streamed, streamed);
  if (!r.breaks(law::recomputation) && !r.breaks(law::declaration))
    check_finite(r, streamed, data, plans.streamed);
  if (r.breaks(law::recomputation) || r.breaks(law::declaration) || r.breaks(law::nothing_to_see) ||
      r.breaks(law::finite)) {
    for (const law l : {law::plan_independence, law::batch_independence, law::accumulation,
                        law::central_differences})
      r.skip(l);
    return;
  }
  check_plan_independence(r, of, data, plans, plain, stride);
  check_reach(r, of, data, plans.streamed, streamed);
  check_accumulation(r, of, data, plans.streamed, streamed, allowed);
  if (r.breaks(law::plan_independence))  // packing changes chunks, too
    r.skip(law::batch_independence);
  else if (of.couples)
    r.skip(law::batch_independence, "the value is no sum over samples");
  else if (of.owns_rows)
    r.skip(law::batch_independence,
           "a loss of whole rows may hold rows of its own by their place in the batch, and samples "
           "packed otherwise stand elsewhere");
  else
    check_batch_independence(r, of, data, plans.streamed, allowed);
  // Of what is right so far: a fault that is known shows here, too.
  if (r && !of.scores && !of.owns_rows && !of.couples)
    check_length(r, of, data, streamed, allowed, plans.streamed.shape.grains.tile);
  if (r && !of.owns_rows) check_randomness(r, of, data, plans.streamed);
  if (r && of.reaches_rows) check_task_order(r, of, data, streamed);
  if (of.single) return;
  check_differences(r, of, data, plans.streamed, streamed, allowed);
}

// In one precision: without states from outside, and with them where the layer has any.
inline void judge(report& r, subject& of, const setting& s) {
  of.into = &r;
  r.speak_of(of.single ? "fp32" : "fp64");
  r.counted_allocations = counts_allocations();
  given data = data_for(of, s, 0);
  data.initial.clear();
  judge(r, of, data, s.allowed, 1);
  if (of.initial_size(s.prefix) > 0) judge(r, of, data_for(of, s, s.prefix), s.allowed, 5);
  // Of a layer that is right so far: any other fault shows here, too.
  if (r && !of.scores && of.split.stateful() && of.split.sees == past && !of.couples) {
    setting sharing = s;
    sharing.samples = sharing_samples(s.grains);
    const position prefix = of.initial_size(s.prefix) > 0 ? s.prefix : 0;
    check_shared_prompt(r, of, data_for(of, sharing, prefix), s.allowed, 7);
  }
  if (!of.scores) return;
  const step_plan plan = of.plans(data.samples, 0).streamed;
  check_nothing_scored(r, of, data, plan);
  check_untouched(r, of, data, plan);
}

// What needs both precisions, and places that are visited apart: of what is right so far.
inline void judge_together(report& r, subject& exact, subject& single, const setting& s) {
  if (!r) return;
  const given ordinary = [&] {
    given d = data_for(single, s, 0);
    d.initial.clear();
    return d;
  }();
  r.speak_of("");
  check_single_precision(r, exact, single, ordinary, "", s.allowed);
  const bool states = single.initial_size(s.prefix) > 0;
  const given data = states ? data_for(single, s, s.prefix) : ordinary;
  if (states) check_single_precision(r, exact, single, data, "", s.allowed);
  for (const visit& v : visits_of(single, data)) {
    if (r) check_single_precision(r, exact, single, v.data, sentence(" ", v.words), s.allowed);
    r.speak_of("fp64");
    if (r) check_visit(r, exact, v, exact.plain(data.samples, data.prefix, data.beside), s.allowed);
    r.speak_of("");
  }
}

// What a call throws breaks the law that it is tried for, and ends the trial.
template <class F>
void run_to_end(report& r, law tried, const F& trial) {
  try {
    trial();
  } catch (const std::exception& e) {
    r.add(tried, sentence("a step throws: ", e.what()));
  }
}

// In both precisions. Throws what is wrong with the setting.
inline void judge_both(report& r, subject& exact, subject& single, const setting& s) {
  data_for(exact, s, 0);
  run_to_end(r, law::completion, [&] {
    judge(r, exact, s);
    judge(r, single, s);
    judge_together(r, exact, single, s);
  });
}

// A layer, or a composition, on a device. Throws shape_error when it does not take the setting's
// rows.
template <template <class> class Device = default_device, class Layer>
report hold(const Layer& layer, const setting& s) {
  static_assert(
      !names_term<Layer> && !names_summary<Layer>,
      "laws::hold is for layers, and this is a loss: write laws::hold_loss(loss, setting)");
  report r;
  if constexpr (explain_model<Layer, device_sites<Device<double>>>()) {
    engine_subject<double, Layer, functional<double>, Device<double>> exact(layer, {}, s);
    engine_subject<float, Layer, functional<float>, Device<float>> single(layer, {}, s);
    judge_both(r, exact, single, s);
    if (r.breaks(law::completion)) return r;
    if constexpr (has_parameters<Layer>) {
      r.speak_of("fp64");
      const auto still = streambp::frozen(layer);
      engine_subject<double, std::decay_t<decltype(still)>, functional<double>, Device<double>>
          frozen(still, {}, s);
      run_to_end(r, law::frozen, [&] {
        given data = data_for(exact, s, 0);
        data.initial.clear();
        check_frozen(r, exact, frozen, data);
        if (exact.initial_size(s.prefix) > 0)
          check_frozen(r, exact, frozen, data_for(exact, s, s.prefix));
      });
    }
  }
  return r;
}

// A head for each loss, if there are several.
template <class Head, class Loss>
auto heads_for(const Head& head, const Loss&) {
  return head;
}
template <class Head, class... Loss>
auto heads_for(const Head& head, const losses_of<Loss...>&) {
  return heads(((void)std::type_identity<Loss>{}, head)...);
}

// A loss, or several of tokens, losses(l, m), with the same labels, at the end of a small model, on
// a device. The samples of `s` are those that the loss speaks of.
template <template <class> class Device = default_device, class Loss>
report hold_loss(const Loss& loss, setting s) {
  report r;
  if constexpr (explain_losses<Device<double>>(
                    std::type_identity<typename loss_list<Loss>::types>{})) {
    if (s.vocabulary == 0) s.vocabulary = 11;
    const auto model =
        linear(s.features, s.features) | heads_for(linear(s.features, s.vocabulary), loss);
    using model_type = std::decay_t<decltype(model)>;
    engine_subject<double, model_type, Loss, Device<double>> exact(model, loss, s);
    engine_subject<float, model_type, Loss, Device<float>> single(model, loss, s);
    judge_both(r, exact, single, s);
  }
  return r;
}

}  // namespace streambp::laws
