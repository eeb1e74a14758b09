// Plans for two streams that share one budget.
#pragma once

#include <algorithm>

#include "../engine/encoder_decoder.hpp"
#include "fastest_plan.hpp"

namespace streambp {

// The fastest plans of both models that fit options.budget together. `options` are the decoder's;
// `features` is the width of the encoder's rows. Throws budget_error.
template <class Scalar = float, class Encoder, class Decoder, class Loss>
encoder_decoder_plan<Scalar> plan_encoder_decoder(const Encoder& encoder, const Decoder& decoder,
                                                  const Loss&, const packed& source,
                                                  const packed& target, position features,
                                                  plan_options options = {}) {
  using device = default_device<Scalar>;
  using bridge = decoder_loss<device>;
  if constexpr (!explain_step<device, Encoder, bridge>() ||
                !explain_step<device, Decoder, Loss>()) {
    return {};
  } else {
    plan_options below = options, above = options;
    below.features = 0;
    above.context = source;
    above.context_features = features;
    planner<device, Encoder, bridge> of_encoder(encoder, source, below);
    if (of_encoder.model().heads.front().out != features)
      throw shape_error(sentence("plan_encoder_decoder: the encoder's rows have ",
                                 of_encoder.model().heads.front().out, " features, not ",
                                 features));
    planner<device, Decoder, Loss> of_decoder(decoder, target, above);

    encoder_decoder_plan<Scalar> best;
    best.shared = 2 * sizeof(Scalar) * std::size_t(source.tokens() * features);
    bool found = false;
    // Of so many bytes for the encoder; the decoder's are what it leaves.
    const auto consider = [&](std::size_t share) {
      below.budget = share;
      const auto first = of_encoder.with(source, below).search();
      if (options.budget != unlimited)
        above.budget = options.budget - std::min(options.budget, best.shared + first->peak());
      const auto second = of_decoder.with(target, above).search();
      if (!second || (found && first->cost + second->cost >= best.encoder.cost + best.decoder.cost))
        return;
      found = true;
      best.encoder = {*first};
      best.decoder = {*second};
    };
    if (options.budget == unlimited) {
      consider(unlimited);
    } else {
      const std::size_t least = of_encoder.search(true)->peak();
      const auto alone = of_encoder.search();  // more than its bytes do the encoder no good
      const std::size_t most = alone ? alone->peak() : 0;
      for (std::size_t share = least; share <= most;
           share = share < most ? std::min(most, share + std::max(least, share / 2)) : most + 1)
        consider(share);
      if (!found) {
        const std::size_t both = best.shared + least + of_decoder.search(true)->peak();
        throw budget_error(sentence("plan_encoder_decoder: no exact plans fit ", options.budget,
                                    " bytes; the least is ", both),
                           both);
      }
    }
    below.budget = best.encoder.budget == 0 ? unlimited : best.encoder.budget;
    above.budget = best.decoder.budget == 0 ? unlimited : best.decoder.budget;
    best.encoder = {beside_others(best.encoder, of_encoder, source, below)};
    best.decoder = {beside_others(best.decoder, of_decoder, target, above)};
    return best;
  }
}

}  // namespace streambp
