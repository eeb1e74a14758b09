// Whether a layer's forward returns its result, so that its backward can be derived.
#pragma once

#include <utility>

#include "../expression/dual.hpp"
#include "../traits/named.hpp"
#include "recorder.hpp"

namespace streambp::autodiff {

// An entry of nothing: asks what a forward of one argument returns.
struct sample {
  sample() = default;
  sample(double);
  friend sample operator+(sample, sample);
  friend sample operator-(sample, sample);
  friend sample operator*(sample, sample);
  friend sample operator/(sample, sample);
  friend sample operator-(sample);
  friend sample operator<(sample, sample);
  friend sample select(sample, sample, sample);
  friend sample exp(sample);
  friend sample expm1(sample);
  friend sample log(sample);
  friend sample log1p(sample);
  friend sample tanh(sample);
  friend sample erf(sample);
  friend sample sqrt(sample);
  friend sample abs(sample);
};

// The slots that a layer lists itself.
template <class L>
constexpr auto listed_slots(const L& layer, [[maybe_unused]] position in) {
  if constexpr (requires { layer.slots(in); })
    return layer.slots(in);
  else if constexpr (requires { layer.slots(); })
    return layer.slots();
  else
    return std::tuple<>{};
}
template <class L>
using listed_slots_of = decltype(listed_slots(std::declval<const L&>(), position{}));

// auto forward(auto x) const: entry by entry.
template <class L>
concept entry_forward = requires(const L& layer, dual<sample> x) {
  { layer.forward(x) } -> std::same_as<dual<sample>>;
};

template <class Slots>
inline constexpr bool is_tuple = false;
template <class... Slot>
inline constexpr bool is_tuple<std::tuple<Slot...>> = true;

// auto forward(auto& at, auto x) const.
template <class L>
concept row_forward = is_tuple<listed_slots_of<L>> &&
    requires(const L& layer, const recorder<listed_slots_of<L>, phase::forward>& at, variable x) {
  { layer.forward(at, x) } -> std::same_as<variable>;
};

template <class L>
concept derivable =
    open_class<L> && names_forward<L> && !names_backward<L> && (entry_forward<L> || row_forward<L>);

}  // namespace streambp::autodiff
