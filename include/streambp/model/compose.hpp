// Models from layers: a | b, residual(f), repeat(n, f), frozen(f), named("trunk", f), heads(f, g).
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../autodiff/derived.hpp"  // the traits of layers whose backward is derived
#include "../core/error.hpp"
#include "../core/position.hpp"
#include "../traits/declared.hpp"

namespace streambp {

template <class First, class Second>
struct sequential {
  First first;
  Second second;
};

// y = x + f(x)
template <class F>
struct residual_of {
  F inner;
};

// n copies of f, each with parameters of its own, one after another.
template <class F>
struct repeat_of {
  position count;
  F inner;
};

// f without parameter gradients; x still gets its gradient.
template <class F>
struct frozen_of {
  F inner;
};

// f, whose parameters' names begin with a name of the caller's. The schedule does not see it.
template <class F>
struct named_of {
  std::string name;
  F inner;
};

// Several outputs of the rows before them, each with a loss of its own.
template <class... F>
struct heads_of {
  std::tuple<F...> each;
};

template <class F>
constexpr residual_of<F> residual(F inner) {
  return {std::move(inner)};
}

template <class F>
repeat_of<F> repeat(position count, F inner) {
  if (count < 1)
    throw shape_error(sentence("repeat: ", count, " blocks; a model has at least one"));
  return {count, std::move(inner)};
}

template <class F>
constexpr frozen_of<F> frozen(F inner) {
  return {std::move(inner)};
}

// The layers of f count by themselves: one more layer outside of it leaves their names as they are.
// Throws shape_error unless the name is of letters, digits, _ and -.
template <class F>
named_of<F> named(std::string name, F inner) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), plain))
    throw shape_error(sentence("named: '", name, "' is no name; one has letters, digits, _ and -"));
  return {std::move(name), std::move(inner)};
}

// They end a model, and each is of layers that see their own row alone. The step's loss is then
// losses(l, m): one a head, in this order.
template <class... F>
constexpr heads_of<F...> heads(F... each) {
  static_assert(sizeof...(F) > 0, "heads(...) has one head at least: heads(linear(16, 100))");
  return {{std::move(each)...}};
}

template <class>
inline constexpr bool is_composition = false;
template <class A, class B>
inline constexpr bool is_composition<sequential<A, B>> = true;
template <class F>
inline constexpr bool is_composition<residual_of<F>> = true;
template <class F>
inline constexpr bool is_composition<repeat_of<F>> = true;
template <class F>
inline constexpr bool is_composition<frozen_of<F>> = true;
template <class F>
inline constexpr bool is_composition<named_of<F>> = true;
template <class... F>
inline constexpr bool is_composition<heads_of<F...>> = true;

// What may stand on a side of |.
template <class L>
concept composable = is_composition<L> || declared_layer<L>;

namespace detail {

template <class L>
constexpr bool explain_side() {
  if constexpr (is_composition<L>)
    return true;
  else
    return explain_declared<L>();
}

}  // namespace detail

// One side is enough to make it this library's |; the other one is asked for in words.
template <class A, class B>
requires(composable<A> || composable<B>) constexpr sequential<A, B> operator|(A first, B second) {
  static_assert((detail::explain_side<A>(), detail::explain_side<B>(), true));
  return {std::move(first), std::move(second)};
}

}  // namespace streambp
