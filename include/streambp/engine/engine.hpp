// The engine of a model and a loss.
#pragma once

#include "door.hpp"
#include "step_runner.hpp"

namespace streambp {

template <class Device, class Model, class Loss>
class basic_engine : public step_runner<Device> {
  static_assert((explain_step<Device, Model, Loss>(), true));  // an error there is in words
  using base = step_runner<Device>;

 public:
  using scalar = typename Device::scalar;

  basic_engine(const step_plan& p, const Model& model, Loss loss)
      : base(p, std::make_shared<model_sections<Device, Model>>(model, p.shape.features),
             runners_of<Device>(loss_list<Loss>::of(std::move(loss)))) {}

  // See step_runner. A loss of whole rows has none.
  void log_probabilities(const tensor_list<const scalar>& parameters, const batch<scalar>& data,
                         std::span<double> out, position head = 0) requires(scores_labels<Loss>) {
    base::log_probabilities(parameters, data, out, head);
  }

  // Of one head.
  template <int Head = 0>
  auto& loss() {
    using own = std::tuple_element_t<Head, typename loss_list<Loss>::types>;
    return static_cast<typed_loss<Device, own>&>(base::any_loss(Head)).loss;
  }
};

}  // namespace streambp
