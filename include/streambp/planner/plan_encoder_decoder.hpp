// Plans for two streams that share one budget.
#pragma once

#include <algorithm>
#include <optional>

#include "../engine/encoder_decoder.hpp"
#include "fastest_plan.hpp"

namespace streambp {

// The fastest plans of both models that fit options.budget together. `options` are the decoder's;
// `features` is the width of the encoder's rows. Throws budget_error.
template <class Scalar = float, class Encoder, class Decoder, class Loss>
encoder_decoder_plan<Scalar> plan_encoder_decoder(const Encoder& encoder, const Decoder& decoder,
                                                  const Loss& loss, const packed& source,
                                                  const packed& target, position features,
                                                  plan_options options = {}) {
  using bridge = decoder_loss<default_device<Scalar>>;
  const std::size_t shared = std::size_t(2 * source.tokens() * features) * sizeof(Scalar);
  plan_options above = options, below = options;
  above.context = source;
  above.context_features = features;
  below.features = 0;
  planner<default_device<Scalar>, Encoder, bridge> of_encoder(encoder, source, below);
  if (of_encoder.model().head.out != features)
    throw shape_error(sentence("plan_encoder_decoder: the encoder's rows have ",
                               of_encoder.model().head.out, " features, not ", features));
  const auto planned = [&](std::size_t for_encoder) {
    encoder_decoder_plan<Scalar> p;
    p.shared = shared;
    below.budget = for_encoder;
    p.encoder = plan<Scalar>(encoder, bridge{}, source, below);
    if (options.budget != unlimited)
      above.budget = options.budget - std::min(options.budget, shared + p.encoder.peak());
    p.decoder = plan<Scalar>(decoder, loss, target, above);
    return p;
  };
  if (options.budget == unlimited) return planned(unlimited);

  const std::size_t least = of_encoder.search(true)->peak();
  std::optional<encoder_decoder_plan<Scalar>> best;
  const auto alone = of_encoder.search();  // more than its bytes do the encoder no good
  const std::size_t most = alone ? alone->peak() : 0;
  for (std::size_t share = least; share <= most;
       share = share < most ? std::min(most, share + std::max(least, share / 2)) : most + 1) {
    try {
      auto p = planned(share);
      if (!best || p.encoder.cost + p.decoder.cost < best->encoder.cost + best->decoder.cost)
        best = std::move(p);
    } catch (const budget_error&) {  // the encoder's share leaves the decoder too little
    }
  }
  if (best) return *best;
  above.budget = unlimited;
  const std::size_t both =
      shared + least +
      planner<default_device<Scalar>, Decoder, Loss>(decoder, target, above).search(true)->peak();
  throw budget_error(sentence("plan_encoder_decoder: no exact plans fit ", options.budget,
                              " bytes; the least is ", both),
                     both);
}

}  // namespace streambp
