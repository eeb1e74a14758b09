// A layer or loss on trial, in the ordinary planner and engine.
#pragma once

#include <type_traits>

#include "../engine/default_engine.hpp"
#include "engine_stepper.hpp"
#include "plan_choices.hpp"
#include "trial_model.hpp"

namespace streambp::laws {

// A subject whose model and loss are behind runners.
template <class Device>
class runner_subject : public subject {
 public:
  using device = Device;

  const parameter_table& parameters() const override { return list().table; }
  position initial_size(position prefix) const override { return list().initial_size(prefix); }
  plan_list plans(const packed& samples, position prefix, const packed& beside = {}) override {
    const plan_options options = options_for(prefix, beside);
    plan_maker<device> one = maker(samples, options);
    expect_no_own_loops(*sections_, one.shape());
    return every_plan(one, heads_couple_.any(), samples, options);
  }
  step_plan streamed(const packed& samples, position prefix, const packed& beside,
                     int threads) override {
    plan_options options = options_for(prefix, beside);
    options.threads = threads;
    return maker(samples, options).complete(streamed_choice(list(), grains_));
  }
  step_plan plain(const packed& samples, position prefix, const packed& beside) override {
    return maker(samples, options_for(prefix, beside)).plain();
  }

 protected:
  // Before anything is asked of it. `facts`: of the first head's loss.
  void put(std::shared_ptr<const section_runner<device>> sections, const loss_facts& facts,
           coupled_heads heads_couple, bool on_layer, const setting& s) {
    reaches_rows = Device::is_host;
    sections_ = std::move(sections);
    heads_couple_ = heads_couple;
    grains_ = s.grains;
    features = s.features;
    results = list().heads.front().out;
    split = list().heads.front().split;
    for (const auto& section : list().sections) split = then(split, section.split);
    single = sizeof(typename Device::scalar) == 4;
    scores = !on_layer && !facts.sees_rows;
    if (!on_layer) ignored = facts.ignore_index;
    couples = heads_couple.any() || split.tallies;
    owns_rows = !on_layer && facts.sees_rows;
  }
  const section_runner<device>& as_given() const { return *sections_; }

 private:
  const section_list& list() const { return sections_->list(); }
  plan_maker<device> maker(const packed& samples, const plan_options& options) const {
    return {sections_, heads_couple_, samples, options};
  }
  plan_options options_for(position prefix, const packed& beside) const {
    plan_options options;
    options.features = features;
    options.prefix = prefix;
    options.input_gradient = true;
    options.grains = grains_;
    if (split.crosses) {
      options.context = beside;
      options.context_features = features;
    }
    return options;
  }

  std::shared_ptr<const section_runner<device>> sections_;
  coupled_heads heads_couple_;
  geometry grains_;
};

template <class Scalar, class Layer, class Loss, class Device = default_device<Scalar>>
class engine_subject : public runner_subject<Device> {
 public:
  using base = runner_subject<Device>;
  static constexpr bool on_layer = is_functional<Loss>;
  using model_type = decltype(trial_model<!on_layer>(std::declval<const Layer&>(),
                                                     std::declval<watch&>(), setting{}));

  // Throws shape_error when the layer does not take s.features.
  engine_subject(const Layer& layer, const Loss& loss, const setting& s) : loss_(loss) {
    base::put(
        std::make_shared<sections>(trial_model<!on_layer>(layer, base::watched, s), s.features),
        std::get<0>(loss_list<Loss>::of(loss_)), couples_of<Loss>(), on_layer, s);
  }

  std::unique_ptr<stepper> run(const step_plan& plan) override {
    auto losses = runners_of<Device>(loss_list<Loss>::of(loss_));
    functional<Scalar>* of_layer = nullptr;
    if constexpr (on_layer)
      of_layer = &static_cast<typed_loss<Device, Loss>&>(*losses.front()).loss;
    // A copy of the layer as it was given: what it counts or keeps begins anew.
    auto own = std::make_shared<sections>(static_cast<const sections&>(base::as_given()));
    return std::make_unique<engine_stepper<Device>>(plan, std::move(own), std::move(losses),
                                                    of_layer, *this);
  }

 private:
  using sections = model_sections<Device, model_type>;

  Loss loss_;
};

}  // namespace streambp::laws
