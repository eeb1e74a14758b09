// Whether somebody meant a type to be a layer, and where its members are.
#pragma once

#include <concepts>

#include "layer_traits.hpp"
#include "named.hpp"
#include "probe.hpp"

namespace streambp {

template <class L>
struct adopted_by {
  using type = layer_traits<L>;
};
template <class L>
requires requires { typename layer_traits<L>::adopts; }
struct adopted_by<L> {
  using type = typename layer_traits<L>::adopts;
};
// The class whose members are the layer's: L or its adapter; or a specialization of layer_traits
// that adopts none.
template <class L>
using adopted = typename adopted_by<L>::type;
template <class L>
concept written_out = std::is_same_v<adopted<L>, layer_traits<L>>;

template <class L>
concept named_layer = requires {
  typename std::bool_constant<(static_cast<const char*>(L::name) != nullptr)>;
};
template <class L>
concept widens = requires(const L& layer, position in) {
  { layer.features(in) } -> std::convertible_to<position>;
};

// Of a final class names are not known.
template <class L>
concept final_layer = std::is_final_v<L> &&
    requires(const L& layer, site_probe& at, view<float> x) {
  layer.forward(at, x, x);
};

template <class L>
concept claims_reach = requires {
  { L::sees } -> std::convertible_to<reach>;
};

// Good or not: that is said by fault_of_layer.
template <class L>
concept declared_layer = names_slots<L> || names_forward<L> || names_backward<L> || widens<L> ||
    named_layer<L> || claims_reach<L> || final_layer<L> || !std::same_as<adopted<L>, L>;

// The door of every composition.
template <class L>
constexpr bool explain_declared() {
  constexpr bool declared = declared_layer<L>;
  static_assert(
      declared,
      "this type is no layer: give it forward(at, x, y) and backward(at, x, y, dy, dx), or "
      "specialise layer_traits for it by adapted_traits");
  return declared;
}

}  // namespace streambp
