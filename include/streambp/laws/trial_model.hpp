// The model that a layer is tried in: two of it in a row where its result is as wide as its input.
#pragma once

#include "../schedule/instances.hpp"
#include "setting.hpp"
#include "watched_layer.hpp"

namespace streambp::laws {

// Token ids come first in a model, a shared parameter has one owner, repeat stands at the top.
template <class L>
inline constexpr bool stands_once = layer_traits<L>::takes_tokens ||
                                    (layer_traits<L>::count::of(slot_kind::shared) > 0);
template <class A, class B>
inline constexpr bool stands_once<sequential<A, B>> = stands_once<A> || stands_once<B>;
template <class F>
inline constexpr bool stands_once<residual_of<F>> = stands_once<F>;
template <class F>
inline constexpr bool stands_once<frozen_of<F>> = stands_once<F>;
template <class F>
inline constexpr bool stands_once<named_of<F>> = stands_once<F>;
template <class F>
inline constexpr bool stands_once<repeat_of<F>> = true;

template <class... F>
inline constexpr bool stands_once<heads_of<F...>> = true;

template <class L>
inline constexpr bool has_parameters = (layer_traits<L>::count::of(slot_kind::parameter) > 0);
template <class A, class B>
inline constexpr bool has_parameters<sequential<A, B>> = has_parameters<A> || has_parameters<B>;
template <class F>
inline constexpr bool has_parameters<residual_of<F>> = has_parameters<F>;
template <class F>
inline constexpr bool has_parameters<frozen_of<F>> = false;
template <class F>
inline constexpr bool has_parameters<named_of<F>> = has_parameters<F>;
template <class F>
inline constexpr bool has_parameters<repeat_of<F>> = has_parameters<F>;
template <class... F>
inline constexpr bool has_parameters<heads_of<F...>> = (has_parameters<F> || ...);

// AsGiven: the layer is a whole model already.
template <bool AsGiven, class Layer>
auto trial_model(const Layer& layer, watch& by, const setting& s) {
  auto inner = under_watch(layer, by);
  if constexpr (AsGiven || stands_once<Layer>) {
    return inner;
  } else {
    auto model = repeat(1, inner);
    const instance_list<decltype(model)> once(model, s.features);
    if (s.twice && once.trunk_width() == s.features) model.count = 2;
    return model;
  }
}

}  // namespace streambp::laws
