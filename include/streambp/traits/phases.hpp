// Whether a layer's functions can be called as the engine calls them. Only declarations are looked
// at: a body is not instantiated unless its return type is deduced.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "../core/view.hpp"
#include "layer_traits.hpp"

namespace streambp {

// What `at` comes with: rows to write, rows to read, and the tokens of a layer that takes them.
template <class At>
using rows_of = view<typename At::scalar>;
template <class At>
using given_rows_of = view<const typename At::scalar>;
template <class L, class At>
using input_of_layer = std::conditional_t<layer_traits<L>::takes_tokens,
                                          std::span<const std::int32_t>, given_rows_of<At>>;

template <class L, class At>
concept has_remember = requires(const L& l, At& at, input_of_layer<L, At> x) {
  layer_traits<L>::remember(l, at, x);
};
template <class L, class At>
concept has_forward = requires(const L& l, At& at, input_of_layer<L, At> x, rows_of<At> y) {
  layer_traits<L>::forward(l, at, x, y);
};
template <class L, class At>
concept has_backward = requires(const L& l, At& at, input_of_layer<L, At> x, given_rows_of<At> y,
                                rows_of<At> dx) {
  layer_traits<L>::backward(l, at, x, y, y, dx);
};
template <class L, class At>
concept has_release = requires(const L& l, At& at, input_of_layer<L, At> x, rows_of<At> dx) {
  layer_traits<L>::release(l, at, x, dx);
};

// Rows of another stream, too.
template <class L, class At>
concept has_context = requires(const L& l, At& at, given_rows_of<At> c, rows_of<At> dc) {
  layer_traits<L>::remember_context(l, at, c);
  layer_traits<L>::release_context(l, at, c, dc);
};
template <class L, class At>
concept has_side_loss = requires(const L& l, At& at) {
  { layer_traits<L>::side_loss(l, at) } -> std::convertible_to<double>;
};

}  // namespace streambp
