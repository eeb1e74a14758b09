// The likely mistakes in a composition, each as one sentence with its remedy.
#pragma once

#include <algorithm>

#include "../model/explain.hpp"
#include "section.hpp"

namespace streambp {

enum class model_fault : unsigned char {
  none,
  heads_not_at_the_end,
  repeat_inside_a_block,
  tokens_not_first,
  too_many_steps,
  sees_all_behind_state,
  head_sees_other_rows
};

// What stands in a composition, by type.
template <class L>
struct contents {
  static constexpr int steps = 1;
  static constexpr int takers = layer_traits<L>::takes_tokens;  // layers that take tokens
  static constexpr bool repeats = false;
  static constexpr int heads = 0;  // heads(...) that stand there
};
template <class A, class B>
struct contents<sequential<A, B>> {
  static constexpr int steps = contents<A>::steps + contents<B>::steps;
  static constexpr int takers = contents<A>::takers + contents<B>::takers;
  static constexpr bool repeats = contents<A>::repeats || contents<B>::repeats;
  static constexpr int heads = contents<A>::heads + contents<B>::heads;
};
template <class F>
struct contents<residual_of<F>> : contents<F> {
  static constexpr int steps = contents<F>::steps + 1;
};
template <class F>
struct contents<frozen_of<F>> : contents<F> {};
template <class F>
struct contents<repeat_of<F>> : contents<F> {
  static constexpr bool repeats = true;
};

// Each of them is a section of its own.
template <class... F>
struct contents<heads_of<F...>> {
  static constexpr int steps = std::max({contents<F>::steps...});
  static constexpr int takers = (0 + ... + contents<F>::takers);
  static constexpr bool repeats = (contents<F>::repeats || ...);
  static constexpr int heads = (1 + ... + contents<F>::heads);
};

template <class E>
inline constexpr bool nests_repeat = contents<E>::repeats;
template <class F>
inline constexpr bool nests_repeat<repeat_of<F>> = contents<F>::repeats;

// A layer that stands alone, perhaps frozen.
template <class E>
inline constexpr bool is_single = !is_composition<E>;
template <class F>
inline constexpr bool is_single<frozen_of<F>> = is_single<F>;

template <class... Item>
constexpr bool fit_in_sections(std::type_identity<std::tuple<Item...>>) {
  return ((contents<Item>::steps < program::most) && ...);
}
template <class... Item>
constexpr bool all_stream(std::type_identity<std::tuple<Item...>>) {
  return ((objection<Item>() == nullptr) && ...);
}
template <class... Item>
constexpr bool all_see_their_row(std::type_identity<std::tuple<Item...>>) {
  return true;
}
template <class... F>
constexpr bool all_see_their_row(std::type_identity<std::tuple<heads_of<F...>>>) {
  return ((program_of<F>().split() == dependency{}) && ...);
}
template <class... F>
constexpr bool all_stream(std::type_identity<std::tuple<heads_of<F...>>>) {
  return true;
}
template <class Element>
using items_in = std::type_identity<decltype(items_of(std::declval<const Element&>()))>;

template <class...>
inline constexpr bool last_is_heads = false;
template <class E>
inline constexpr bool last_is_heads<E> = is_heads<E>;
template <class E, class... Behind>
inline constexpr bool last_is_heads<E, Behind...> = last_is_heads<Behind...>;

template <class First, class... Element>
constexpr model_fault fault_of_elements(
    std::type_identity<std::tuple<First, Element...>> elements) {
  using enum model_fault;
  constexpr int takers = (contents<First>::takers + ... + contents<Element>::takers);
  constexpr int found = (contents<First>::heads + ... + contents<Element>::heads);
  if constexpr (found != int(last_is_heads<Element...>)) {
    return heads_not_at_the_end;
  } else if constexpr (nests_repeat<First> || (nests_repeat<Element> || ...)) {
    return repeat_inside_a_block;
  } else if constexpr (takers != (is_single<First> ? contents<First>::takers : 0)) {
    return tokens_not_first;
  } else if constexpr (!fit_in_sections(items_in<First>{}) ||
                       !(fit_in_sections(items_in<Element>{}) && ...)) {
    return too_many_steps;
  } else if constexpr (!all_stream(items_in<First>{}) ||
                       !(all_stream(items_in<Element>{}) && ...)) {
    return sees_all_behind_state;
  } else if constexpr (!(all_see_their_row(items_in<Element>{}) && ...)) {
    return head_sees_other_rows;
  } else {  // the elements of the head form one section
    constexpr int steps[] = {contents<First>::steps, contents<Element>::steps...};
    int head = 0;
    for (int i = head_start(elements); i <= int(sizeof...(Element)); ++i) head += steps[i];
    return head < program::most ? none : too_many_steps;
  }
}

// The first fault of a composition whose layers have none.
template <class Model>
constexpr model_fault fault_of_model() {
  return fault_of_elements(
      std::type_identity<decltype(elements_of(std::declval<const Model&>()))>{});
}

// Sites::at<L> is what the functions of layer L get.
struct probe_sites {
  template <class L>
  using at = site_probe;
};

// Explains every layer of a composition.
template <class L, class Sites>
struct explained {
  static constexpr bool value = explain_layer<L, typename Sites::template at<L>>();
};
template <class A, class B, class Sites>
struct explained<sequential<A, B>, Sites> {
  static constexpr bool value = explained<A, Sites>::value && explained<B, Sites>::value;
};
template <class F, class Sites>
struct explained<residual_of<F>, Sites> : explained<F, Sites> {};
template <class F, class Sites>
struct explained<repeat_of<F>, Sites> : explained<F, Sites> {};
template <class F, class Sites>
struct explained<frozen_of<F>, Sites> : explained<F, Sites> {};
template <class... F, class Sites>
struct explained<heads_of<F...>, Sites> {
  static constexpr bool value = (explained<F, Sites>::value && ...);
};

// True if Model can be streamed; otherwise an error says why not.
template <class Model, class Sites = probe_sites>
constexpr bool explain_model() {
  using M = unnamed_type<Model>;
  if constexpr (explained<M, Sites>::value) {
    using enum model_fault;
    constexpr model_fault fault = fault_of_model<M>();
    static_assert(program::most == 48);  // a sentence below names it
    static_assert(
        fault != heads_not_at_the_end,
        "heads(...) ends a model: layers stand before it and none behind it, and it stands "
        "outside of any residual, repeat or other heads(...)");
    static_assert(fault != repeat_inside_a_block,
                  "repeat(n, f) stands at the top level of a model: inside a block or a residual "
                  "write its layers one after another with |");
    static_assert(fault != tokens_not_first,
                  "a layer that takes tokens is the first of a model, outside of any residual or "
                  "repeat: move it to the front");
    static_assert(
        fault != too_many_steps,
        "more than 47 layers form one section, which cannot be cut: split the residual, or "
        "put the layers at the model's end that see only their row into repeat(n, f)");
    static_assert(
        fault != sees_all_behind_state,
        "a read that sees all may follow, inside its residual, only layers that see their "
        "own row: put what carries or remembers into a residual of its own before it");
    static_assert(fault != head_sees_other_rows,
                  "a layer in heads(...) remembers, carries or sums over rows; a head sees its own "
                  "row alone: move such a layer to the trunk, before heads(...)");
    return fault == none;
  } else {
    return false;
  }
}

}  // namespace streambp
