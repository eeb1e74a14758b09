// What is asked of a model and a loss before anything is made from them.
#pragma once

#include "../schedule/explain_model.hpp"
#include "../traits/loss_list.hpp"
#include "site.hpp"

namespace streambp {

template <class Device>
struct device_sites {
  template <class L>
  using at = site<Device, L>;
};

template <class Device, class... Loss>
constexpr bool explain_losses(std::type_identity<std::tuple<Loss...>>) {
  return (explain_loss<Loss, Device>() && ...);
}

// True if steps of the model with the loss can be run on a Device; otherwise errors say why not.
template <class Device, class Model, class Loss>
constexpr bool explain_step() {
  if constexpr (explain_model<Model, device_sites<Device>>() &&
                explain_losses<Device>(std::type_identity<typename loss_list<Loss>::types>{})) {
    constexpr bool alike = split_model<Model>::head_count == loss_count<Loss>;
    static_assert(alike,
                  "the model has more heads than there are losses, or fewer: heads(f, g) goes with "
                  "losses(l, m), one loss a head");
    return alike;
  } else {
    return false;
  }
}

}  // namespace streambp
