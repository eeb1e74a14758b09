// A model as a list of section types: trunk sections, where stages may be cut, and the head.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "program.hpp"

namespace streambp {

// A composition without its names.
template <class L>
constexpr const L& unnamed(const L& layer) {
  return layer;
}
template <class F>
constexpr auto unnamed(const named_of<F>& n);
template <class F>
constexpr auto unnamed(const residual_of<F>& r);
template <class F>
constexpr auto unnamed(const frozen_of<F>& f);
template <class F>
constexpr auto unnamed(const repeat_of<F>& r);
template <class... F>
constexpr auto unnamed(const heads_of<F...>& h);
template <class A, class B>
constexpr auto unnamed(const sequential<A, B>& s) {
  auto first = unnamed(s.first);
  auto second = unnamed(s.second);
  return sequential<decltype(first), decltype(second)>{std::move(first), std::move(second)};
}
template <class F>
constexpr auto unnamed(const named_of<F>& n) {
  auto inner = unnamed(n.inner);
  return inner;
}
template <class F>
constexpr auto unnamed(const residual_of<F>& r) {
  auto inner = unnamed(r.inner);
  return residual_of<decltype(inner)>{std::move(inner)};
}
template <class F>
constexpr auto unnamed(const frozen_of<F>& f) {
  auto inner = unnamed(f.inner);
  return frozen_of<decltype(inner)>{std::move(inner)};
}
template <class F>
constexpr auto unnamed(const repeat_of<F>& r) {
  auto inner = unnamed(r.inner);
  return repeat_of<decltype(inner)>{r.count, std::move(inner)};
}
template <class... F>
constexpr auto unnamed(const heads_of<F...>& h) {
  return std::apply(
      [](const auto&... f) {
        return heads_of<std::decay_t<decltype(unnamed(f))>...>{{unnamed(f)...}};
      },
      h.each);
}
template <class Model>
using unnamed_type = std::decay_t<decltype(unnamed(std::declval<const Model&>()))>;

// Top-level elements of a model or of a block, frozen(...) handed down to each.
template <class L>
constexpr auto elements_of(const L& layer) {
  return std::tuple<L>{layer};
}
template <class A, class B>
constexpr auto elements_of(const sequential<A, B>& s) {
  return std::tuple_cat(elements_of(s.first), elements_of(s.second));
}
template <class F>
constexpr auto elements_of(const frozen_of<repeat_of<F>>& f) {
  return std::tuple<repeat_of<frozen_of<F>>>{{f.inner.count, {f.inner.inner}}};
}
template <class A, class B>
constexpr auto elements_of(const frozen_of<sequential<A, B>>& f) {
  return std::tuple_cat(elements_of(frozen_of<A>{f.inner.first}),
                        elements_of(frozen_of<B>{f.inner.second}));
}

template <class... F>
constexpr auto elements_of(const frozen_of<heads_of<F...>>& h) {
  return std::apply(
      [](const auto&... f) {
        return std::tuple<heads_of<frozen_of<F>...>>(
            heads_of<frozen_of<F>...>{std::tuple<frozen_of<F>...>(frozen_of<F>{f}...)});
      },
      h.inner.each);
}

template <class E>
inline constexpr bool is_heads = false;
template <class... F>
inline constexpr bool is_heads<heads_of<F...>> = true;

template <class E>
inline constexpr bool is_repeat = false;
template <class F>
inline constexpr bool is_repeat<repeat_of<F>> = true;

template <class E>
position count_of(const E& element) {
  if constexpr (is_repeat<E>)
    return element.count;
  else
    return 1;
}
template <class E>
constexpr auto items_of(const E& element) {
  if constexpr (is_repeat<E>)
    return elements_of(element.inner);
  else
    return elements_of(element);
}

// Part: index of the top-level element that the section belongs to.
template <class Item, half Part, int Element>
struct section {
  static constexpr program steps = program_of<Item>(Part);
  static constexpr half part = Part;
  static constexpr int element = Element;
  // Of all steps of the item.
  static constexpr program whole() { return program_of<Item>(); }
  using leaf_types = decltype(leaves_of(std::declval<const Item&>()));
  leaf_types leaves;
};

template <int Element, class Item>
constexpr auto sections_of_item(const Item& item) {
  constexpr const char* why = objection<Item>();
  static_assert(
      why == nullptr,
      "a read that sees all may follow, inside its residual, only layers that see their own "
      "row: put what carries or remembers into a residual of its own before it");
  if constexpr (program_of<Item>().split().forces_cut())
    return std::tuple{section<Item, half::remember, Element>{leaves_of(item)},
                      section<Item, half::read, Element>{leaves_of(item)}};
  else
    return std::tuple{section<Item, half::whole, Element>{leaves_of(item)}};
}

template <int Element, class E>
constexpr auto sections_of_element(const E& element) {
  return std::apply(
      [](const auto&... item) { return std::tuple_cat(sections_of_item<Element>(item)...); },
      items_of(element));
}

// The head: trailing elements that see only their row and stand once, or what heads(...) says.
template <class E>
constexpr bool may_stand_in_head() {
  if constexpr (is_repeat<E> || is_heads<E>) {
    return false;
  } else {
    const program p = program_of<E>();
    bool tokens = false;
    for (int i = 0; i < p.operator_count; ++i) tokens = tokens || p.operators[i].takes_tokens;
    return p.split() == dependency{} && !tokens;
  }
}
template <class... E>
constexpr int head_start(std::type_identity<std::tuple<E...>>) {
  constexpr bool may[] = {may_stand_in_head<E>()...};
  int start = sizeof...(E);
  if ((is_heads<E> || ...)) return start - 1;
  while (start > 1 && may[start - 1]) --start;
  return start;
}

template <class Model>
struct split_model {
  using elements = decltype(elements_of(std::declval<const unnamed_type<Model>&>()));
  static constexpr int element_count = int(std::tuple_size_v<elements>);
  static constexpr int trunk_elements = head_start(std::type_identity<elements>{});

  static constexpr auto trunk(const elements& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple_cat(sections_of_element<int(I)>(std::get<I>(e))...);
    }
    (std::make_index_sequence<trunk_elements>{});
  }
  template <class... Item>
  static constexpr auto head(const Item&... item) {
    using items = chain<Item...>;
    return section<items, half::whole, trunk_elements>{
        leaves_of(items{std::tuple<Item...>(item...)})};
  }
  // One of all elements behind the trunk, unless those are heads(...).
  static constexpr auto heads(const elements& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr ((is_heads<std::tuple_element_t<trunk_elements + I, elements>> || ...)) {
        return std::apply([](const auto&... f) { return std::tuple{head(f)...}; },
                          std::get<trunk_elements>(e).each);
      } else {
        return std::tuple{head(std::get<trunk_elements + I>(e)...)};
      }
    }
    (std::make_index_sequence<element_count - trunk_elements>{});
  }
  using trunk_types = decltype(trunk(std::declval<const elements&>()));
  using head_types = decltype(heads(std::declval<const elements&>()));
  static constexpr int trunk_count = int(std::tuple_size_v<trunk_types>);
  static constexpr int head_count = int(std::tuple_size_v<head_types>);
};

// Calls f(integral_constant<I>) for I in [0, N), ascending.
template <int N, class F>
constexpr void for_each_index(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::integral_constant<int, int(I)>{}), ...);
  }
  (std::make_index_sequence<N>{});
}
// Calls f(integral_constant<index>).
template <int N, class F>
constexpr void with_index(int index, F&& f) {
  for_each_index<N>([&](auto i) {
    if (i == index) f(i);
  });
}

}  // namespace streambp
