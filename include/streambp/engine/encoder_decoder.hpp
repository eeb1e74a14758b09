// Two streams: an encoder, and a decoder whose layers read the encoder's rows. To the encoder the
// whole decoder is a loss of its rows.
#pragma once

#include <memory>

#include "default_engine.hpp"

namespace streambp {

// The decoder as the encoder sees it: a row loss that needs all rows before it has a gradient.
template <class Device>
struct decoder_loss {
  using Scalar = typename Device::scalar;
  static constexpr bool host_only = false;

  step_runner<Device>* decoder = nullptr;
  view<Scalar> context, d_context;  // (encoder tokens, features)
  // Of the step that runs.
  std::span<const Scalar> parameters{};
  std::span<Scalar> gradient{};
  const batch<Scalar>* data = nullptr;

  void collect(auto& on, position first_row, view<Scalar> y) const {
    copy(on, y, context.middle_rows(first_row, y.rows));
    zero(on, d_context.middle_rows(first_row, y.rows));
  }
  double finish(bool wants_gradient) const {
    batch<Scalar> with_context = *data;
    with_context.context = context;
    with_context.d_context = d_context;
    if (!wants_gradient) return decoder->value(parameters, with_context);
    return decoder->add_gradient(parameters, with_context, gradient);
  }
  // The encoder's side losses count as much as the decoder's labels.
  double share_of_window() const {
    const packed& samples = decoder->plan().shape.samples;
    const auto tokens = std::size_t(samples.tokens());
    const batch<Scalar> own = data->of_head(0);
    if (own.labels.size() != tokens || (!own.weights.empty() && own.weights.size() != tokens))
      return 0;  // the decoder refuses them
    return decoder->share_of_window(*data);
  }
  bool counts(position segment) const { return decoder->counts(*data, segment); }
  double rows(auto& on, position first_row, view<Scalar> y) const {
    copy(on, d_context.middle_rows(first_row, y.rows), y);
    return 0;
  }
};

template <class Scalar>
struct encoder_decoder_plan {
  typed_plan<Scalar> encoder, decoder;
  std::size_t shared = 0;  // bytes of the encoder's rows and their gradient
  std::size_t peak() const { return encoder.peak() + decoder.peak() + shared; }
  big_count flops() const { return encoder.flops + decoder.flops; }
};

// Parameters and gradients of the two models stand one after the other: the encoder's first.
template <class Scalar, class Encoder, class Decoder, class Loss,
          class Device = default_device<Scalar>>
class encoder_decoder {
 public:
  using bridge = decoder_loss<Device>;

  encoder_decoder(encoder_decoder_plan<Scalar> p, const Encoder& encoder, const Decoder& decoder,
                  Loss loss)
      : plan_(std::move(p)),
        decoder_(plan_.decoder, decoder, std::move(loss)),
        block_(plan_.shared),
        encoder_(plan_.encoder, encoder, bridge{&decoder_, rows(0), rows(1)}) {}

  encoder_decoder(const encoder_decoder&) = delete;  // the encoder's loss points to the decoder
  encoder_decoder& operator=(const encoder_decoder&) = delete;

  const parameter_table& encoder_parameters() const { return encoder_.parameters(); }
  const parameter_table& decoder_parameters() const { return decoder_.parameters(); }
  std::size_t high_water() const {
    return encoder_.high_water() + decoder_.high_water() + plan_.shared;
  }
  big_count flops() const { return encoder_.flops() + decoder_.flops(); }

  // As basic_engine: `source` is the encoder's batch, `target` the decoder's, with the labels.
  double add_gradient(std::span<const Scalar> parameters, const batch<Scalar>& source,
                      const batch<Scalar>& target, std::span<Scalar> gradient) {
    split(parameters, target);
    const auto own = std::size_t(encoder_parameters().gradients),
               others = std::size_t(decoder_parameters().gradients);
    if (gradient.size() != own + others)
      throw shape_error(sentence("encoder_decoder: a gradient of ", gradient.size(),
                                 " entries, the models have ", own, " and ", others));
    encoder_.loss().gradient = gradient.subspan(own);
    return encoder_.add_gradient(encoder_part(parameters), source, gradient.first(own));
  }
  double value(std::span<const Scalar> parameters, const batch<Scalar>& source,
               const batch<Scalar>& target) {
    split(parameters, target);
    return encoder_.value(encoder_part(parameters), source);
  }

 private:
  view<Scalar> rows(int which) const {
    const position tokens = plan_.encoder.shape.samples.tokens(),
                   width = plan_.decoder.shape.context_features;
    return {reinterpret_cast<Scalar*>(block_.data()) + which * tokens * width, tokens, width};
  }
  std::span<const Scalar> encoder_part(std::span<const Scalar> parameters) const {
    return parameters.first(std::size_t(encoder_parameters().parameters));
  }
  void split(std::span<const Scalar> parameters, const batch<Scalar>& target) {
    const position own = encoder_parameters().parameters,
                   wanted = own + decoder_parameters().parameters;
    if (position(parameters.size()) != wanted)
      throw shape_error(sentence("encoder_decoder: ", parameters.size(),
                                 " parameters, the models have ", own, " and ", wanted - own));
    encoder_.loss().parameters = parameters.subspan(std::size_t(own));
    encoder_.loss().data = &target;
  }

  encoder_decoder_plan<Scalar> plan_;
  basic_engine<Device, Decoder, Loss> decoder_;
  typename Device::memory block_;
  basic_engine<Device, Encoder, bridge> encoder_;
};

template <class Scalar, class Encoder, class Decoder, class Loss>
encoder_decoder(encoder_decoder_plan<Scalar>, const Encoder&, const Decoder&, Loss)
    -> encoder_decoder<Scalar, Encoder, Decoder, Loss>;

}  // namespace streambp
