// What is wrong with a layer, if anything, as a value.
#pragma once

#include "../autodiff/derived.hpp"  // the traits of layers whose backward is derived
#include "../traits/declared.hpp"
#include "../traits/phases.hpp"
#include "../traits/probe.hpp"

namespace streambp {

enum class layer_fault : unsigned char {
  none,
  not_declared,
  traits_incomplete,
  flag_without_value,
  sees_no_reach,
  slots_of_other_form,
  no_tuple_of_slots,
  nameless_tag,
  repeated_tag,
  features_of_other_form,
  memory_without_sees,
  sees_row_with_state,
  sees_past_without_state,
  sees_all_without_memory,
  total_without_all,
  sees_all_with_carry,
  memory_without_remember,
  memory_without_release,
  remember_without_memory,
  release_without_memory,
  context_without_phases,
  context_phases_without_slot,
  tally_without_side_loss,
  side_loss_without_tally,
  no_forward,
  no_backward,
  backward_of_other_form
};

namespace detail {

// A specialization of layer_traits that adopts nothing has everything itself.
template <class L>
concept complete_traits = !written_out<L> || requires(const L& layer, position in) {
  typename layer_traits<L>::slot_types;
  layer_traits<L>::slots(layer, in);
  layer_traits<L>::features(layer, in);
  layer_traits<L>::count::of(slot_kind::memory);
  layer_traits<L>::claims;
  layer_traits<L>::split;
  layer_traits<L>::takes_tokens;
  layer_traits<L>::backward_reads_input;
  layer_traits<L>::backward_reads_output;
  layer_traits<L>::counts_flops;
  layer_traits<L>::name();
};

// The schedule is made from constants.
template <class L>
constexpr layer_fault fault_of_constants() {
  using A = adopted<L>;
  using enum layer_fault;
  if constexpr (requires { A::takes_tokens; })
    if (!requires { typename std::bool_constant<bool(A::takes_tokens)>; })
      return flag_without_value;
  if constexpr (requires { A::backward_reads_input; })
    if (!requires { typename std::bool_constant<bool(A::backward_reads_input)>; })
      return flag_without_value;
  if constexpr (requires { A::backward_reads_output; })
    if (!requires { typename std::bool_constant<bool(A::backward_reads_output)>; })
      return flag_without_value;
  if constexpr (requires { A::counts_flops; })
    if (!requires { typename std::bool_constant<bool(A::counts_flops)>; })
      return flag_without_value;
  if constexpr (requires { A::host_only; })
    if (!requires { typename std::bool_constant<bool(A::host_only)>; }) return flag_without_value;
  if constexpr (requires { A::sees; })
    if (!requires { typename std::integral_constant<reach, A::sees>; }) return sees_no_reach;
  return none;
}

template <class T>
inline constexpr bool is_tuple_of_slots = false;
template <class... Tag, slot_kind... Kind>
inline constexpr bool is_tuple_of_slots<std::tuple<slot<Tag, Kind>...>> = true;

template <class Tag>
concept named_tag = requires {
  { Tag::name } -> std::convertible_to<const char*>;
};

template <class... Tag, slot_kind... Kind>
constexpr layer_fault fault_of_tags(std::type_identity<std::tuple<slot<Tag, Kind>...>>) {
  using all_slots = slot_count<std::tuple<slot<Tag, Kind>...>>;
  if (!(named_tag<Tag> && ...)) return layer_fault::nameless_tag;
  // The index of a tag is that of the last slot which has it.
  [[maybe_unused]] int i = 0;
  const bool apart = ((all_slots::template index<Tag>() == i++) && ...);
  return apart ? layer_fault::none : layer_fault::repeated_tag;
}

template <class A>
concept calls_slots = requires(const A& a) {
  a.slots();
}
|| requires(const A& a, position in) { a.slots(in); };
template <class A>
concept features_is_data = requires {
  requires std::is_member_object_pointer_v<decltype(&A::features)>;
};

// A member that is there but cannot be called would pass for one that is absent.
template <class L>
constexpr layer_fault fault_of_slots() {
  using A = adopted<L>;
  if constexpr (!written_out<L> && names_slots<A> && !calls_slots<A>)
    return layer_fault::slots_of_other_form;
  else if constexpr (!is_tuple_of_slots<typename layer_traits<L>::slot_types>)
    return layer_fault::no_tuple_of_slots;
  else if constexpr (!written_out<L> && names_features<A> && !features_is_data<A> && !widens<A>)
    return layer_fault::features_of_other_form;
  else
    return fault_of_tags(std::type_identity<typename layer_traits<L>::slot_types>{});
}

// The reach that is claimed is the one that the slots need.
template <class L>
constexpr layer_fault fault_of_reach() {
  constexpr dependency d = layer_traits<L>::split;
  if (d.remembers && !layer_traits<L>::claims) return layer_fault::memory_without_sees;
  if (d.sees == row && d.stateful()) return layer_fault::sees_row_with_state;
  if (d.sees == past && !d.stateful()) return layer_fault::sees_past_without_state;
  if (d.sees == all && !d.remembers) return layer_fault::sees_all_without_memory;
  if (d.sees == past && layer_traits<L>::count::of(slot_kind::total) > 0)
    return layer_fault::total_without_all;
  if (d.sees == all && d.carries) return layer_fault::sees_all_with_carry;
  return layer_fault::none;
}

// Every phase that its slots need can be called, and none is idle.
template <class L, class At>
constexpr layer_fault fault_of_phases() {
  using A = adopted<L>;
  if constexpr (layer_traits<L>::split.remembers) {
    if (!has_remember<L, At>) return layer_fault::memory_without_remember;
    if (!has_release<L, At>) return layer_fault::memory_without_release;
  } else if constexpr (!written_out<L>) {
    if (names_remember<A>) return layer_fault::remember_without_memory;
    if (names_release<A>) return layer_fault::release_without_memory;
  }
  if constexpr (layer_traits<L>::split.crosses) {
    if (!has_context<L, At>) return layer_fault::context_without_phases;
  } else if constexpr (!written_out<L>) {
    if (names_context<A>) return layer_fault::context_phases_without_slot;
  }
  if constexpr (layer_traits<L>::split.tallies) {
    if (!has_side_loss<L, At>) return layer_fault::tally_without_side_loss;
  } else if constexpr (!written_out<L>) {
    if (names_side_loss<A>) return layer_fault::side_loss_without_tally;
  }
  if (!has_forward<L, At>) return layer_fault::no_forward;
  if constexpr (!has_backward<L, At>)
    return names_backward<A> ? layer_fault::backward_of_other_form : layer_fault::no_backward;
  return layer_fault::none;
}

}  // namespace detail

// The first fault of L, whose functions get an At.
template <class L, class At = site_probe>
constexpr layer_fault fault_of_layer() {
  using enum layer_fault;
  if constexpr (!declared_layer<L>)
    return not_declared;
  else if constexpr (!detail::complete_traits<L>)
    return traits_incomplete;
  else if constexpr (detail::fault_of_constants<L>() != none)
    return detail::fault_of_constants<L>();
  else if constexpr (detail::fault_of_slots<L>() != none)
    return detail::fault_of_slots<L>();
  else if constexpr (detail::fault_of_reach<L>() != none)
    return detail::fault_of_reach<L>();
  else
    return detail::fault_of_phases<L, At>();
}

}  // namespace streambp
