// Whether a class has a member of some name, callable or not, template or not.
#pragma once

#include <type_traits>

#include "../core/language.hpp"

namespace streambp {

namespace detail {

// A name that both bases have is ambiguous in a class that derives from them: then L has it, too.
struct every_name {
  // of a layer
  int slots, features, remember, forward, backward, release, remember_context, side_loss;
  // of a loss
  int term, summary, couple, rows;
};
template <class L>
struct with_every_name : L, every_name {};

}  // namespace detail

template <class L>
concept open_class = std::is_class_v<L> && !std::is_final_v<L>;

// Of a final class nothing is known this way: false.
template <class L>
concept names_slots = open_class<L> && !requires {
  &detail::with_every_name<L>::slots;
};
template <class L>
concept names_features = open_class<L> && !requires {
  &detail::with_every_name<L>::features;
};
template <class L>
concept names_remember = open_class<L> && !requires {
  &detail::with_every_name<L>::remember;
};
template <class L>
concept names_forward = open_class<L> && !requires {
  &detail::with_every_name<L>::forward;
};
template <class L>
concept names_backward = open_class<L> && !requires {
  &detail::with_every_name<L>::backward;
};
template <class L>
concept names_release = open_class<L> && !requires {
  &detail::with_every_name<L>::release;
};
template <class L>
concept names_context = open_class<L> && !requires {
  &detail::with_every_name<L>::remember_context;
};
template <class L>
concept names_side_loss = open_class<L> && !requires {
  &detail::with_every_name<L>::side_loss;
};
template <class L>
concept names_term = open_class<L> && !requires {
  &detail::with_every_name<L>::term;
};
template <class L>
concept names_summary = open_class<L> && !requires {
  &detail::with_every_name<L>::summary;
};
template <class L>
concept names_couple = open_class<L> && !requires {
  &detail::with_every_name<L>::couple;
};
template <class L>
concept names_rows = open_class<L> && !requires {
  &detail::with_every_name<L>::rows;
};

}  // namespace streambp
