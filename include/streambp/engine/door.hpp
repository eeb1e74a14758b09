// What is asked of a model and a loss before anything is made from them.
#pragma once

#include "../schedule/explain_model.hpp"
#include "site.hpp"

namespace streambp {

template <class Device>
struct device_sites {
  template <class L>
  using at = site<Device, L>;
};

// True if steps of the model with the loss can be run on a Device; otherwise errors say why not.
template <class Device, class Model, class Loss>
constexpr bool explain_step() {
  return explain_model<Model, device_sites<Device>>() && explain_loss<Loss, Device>();
}

}  // namespace streambp
