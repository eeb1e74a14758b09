// A loss without its type: what runs heads is compiled once a device.
#pragma once

#include <memory>
#include <vector>

#include "../traits/loss_list.hpp"
#include "loss_rows.hpp"

namespace streambp {

// One call a head chunk. What a kind of loss has nothing to do for is never called.
template <class Device>
class loss_runner {
 public:
  using scalar = typename Device::scalar;

  virtual ~loss_runner() = default;
  virtual loss_facts facts() const = 0;
  // Throws what the loss has against its own members.
  virtual void check(position segments) const = 0;
  virtual bool counts(position segment) const = 0;
  virtual double share_of_window(const packed& samples, const batch<scalar>& data) const = 0;

  // Of tokens.
  virtual void terms(const term_rows& rows, bool gradient) const = 0;
  virtual double couple(std::span<const double> sums, std::span<double> slopes) const = 0;

  // Of whole rows.
  virtual double rows(Device& on, position first_row, view<scalar> y) const = 0;
  virtual void collect(Device& on, position first_row, view<scalar> y) const = 0;
  virtual double finish(bool wants_gradient) const = 0;
};

template <class Device, class Loss>
class typed_loss final : public loss_runner<Device> {
 public:
  using scalar = typename Device::scalar;
  using traits = loss_traits<Loss>;

  Loss loss;
  explicit typed_loss(Loss l) : loss(std::move(l)) {}

  loss_facts facts() const override { return loss; }
  void check(position segments) const override { traits::check(loss, segments); }
  bool counts([[maybe_unused]] position segment) const override {
    if constexpr (traits::knows_what_counts)
      return traits::counts(loss, segment);
    else
      return true;
  }
  double share_of_window(const packed& samples, const batch<scalar>& data) const override {
    return streambp::share_of_window(loss, samples, data);
  }

  void terms([[maybe_unused]] const term_rows& rows,
             [[maybe_unused]] bool gradient) const override {
    if constexpr (!traits::sees_rows)
      add_terms<traits::couples>(
          rows, gradient,
          [&](const row_statistics& s, const label_place& t) { return traits::term(loss, s, t); });
  }
  double couple([[maybe_unused]] std::span<const double> sums,
                [[maybe_unused]] std::span<double> slopes) const override {
    if constexpr (traits::couples && !traits::collects)
      return traits::couple(loss, sums, slopes);
    else
      return 0;
  }

  double rows([[maybe_unused]] Device& on, [[maybe_unused]] position first_row,
              [[maybe_unused]] view<scalar> y) const override {
    if constexpr (traits::sees_rows)
      return traits::rows(loss, on, first_row, y);
    else
      return 0;
  }
  void collect([[maybe_unused]] Device& on, [[maybe_unused]] position first_row,
               [[maybe_unused]] view<scalar> y) const override {
    if constexpr (traits::collects) traits::collect(loss, on, first_row, y);
  }
  double finish([[maybe_unused]] bool wants_gradient) const override {
    if constexpr (traits::collects)
      return traits::finish(loss, wants_gradient);
    else
      return 0;
  }
};

// By head.
template <class Device, class... Loss>
std::vector<std::unique_ptr<loss_runner<Device>>> runners_of(std::tuple<Loss...> losses) {
  std::vector<std::unique_ptr<loss_runner<Device>>> all;
  std::apply(
      [&](auto&... loss) {
        (all.push_back(std::make_unique<typed_loss<Device, Loss>>(std::move(loss))), ...);
      },
      losses);
  return all;
}

}  // namespace streambp
