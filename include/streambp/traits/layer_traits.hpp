// The customization point for layers. The primary template adopts a layer's members; specialize it
// for a type that cannot be edited. Library code goes through the trait only.
//
// A layer has
//   slots() or slots(in)       what it keeps (split/slot.hpp)
//   features(in)               width of its output; absent: as wide as its input. Throws shape_error.
//   sees                       row, past or all; absent: derived from the slots
//   forward(at, x, y)          the read phase. y (rows, out) is assigned
//   backward(at, x, y, dy, dx) adds to dx, to parameter gradients, to gradients of rows seen
// and, if it has memory slots,
//   remember(at, x)            writes its own rows of the memory
//   release(at, x, dx)         its own rows' memory gradient is final: through the projections, once
// `backward_reads_input` and `backward_reads_output` say (when false) that x or y holds nothing in
// backward; a layer of token ids sets `takes_tokens` and gets them as x. `counts_flops` says that it
// touches data through primitives only, so that the planner may send it rows without data; the FLOPs
// of any other layer are neither planned nor counted.
#pragma once

#include <tuple>
#include <utility>

#include "../split/dependency.hpp"
#include "../split/slot.hpp"

namespace streambp {

template <class L>
struct layer_traits {
  static constexpr auto slots(const L& layer, position in) {
    if constexpr (requires { layer.slots(in); })
      return layer.slots(in);
    else if constexpr (requires { layer.slots(); })
      return layer.slots();
    else
      return std::tuple<>{};
  }
  using slot_types = decltype(slots(std::declval<const L&>(), position{}));
  using count = slot_count<slot_types>;

  static constexpr position features(const L& layer, position in) {
    if constexpr (requires { layer.features(in); })
      return layer.features(in);
    else
      return in;
  }

  static constexpr bool claims = requires { L::sees; };
  static constexpr reach claim() {
    if constexpr (claims)
      return L::sees;
    else
      return count::of(slot_kind::carry) > 0 ? reach::past : reach::row;
  }
  static constexpr dependency split{claim(), count::of(slot_kind::carry) > 0,
                                    count::of(slot_kind::memory) > 0};

  static constexpr bool takes_tokens = [] {
    if constexpr (requires { L::takes_tokens; })
      return bool(L::takes_tokens);
    else
      return false;
  }();
  static constexpr bool backward_reads_input = [] {
    if constexpr (requires { L::backward_reads_input; })
      return bool(L::backward_reads_input);
    else
      return true;
  }();
  static constexpr bool backward_reads_output = [] {
    if constexpr (requires { L::backward_reads_output; })
      return bool(L::backward_reads_output);
    else
      return true;
  }();
  static constexpr bool counts_flops = [] {
    if constexpr (requires { L::counts_flops; })
      return bool(L::counts_flops);
    else
      return false;
  }();
  static constexpr const char* name() {
    if constexpr (requires { L::name; })
      return L::name;
    else
      return "layer";
  }

  template <class At, class X>
  static void remember(const L& layer, At& at, X x) { layer.remember(at, x); }
  template <class At, class X, class Y>
  static void forward(const L& layer, At& at, X x, Y y) { layer.forward(at, x, y); }
  template <class At, class X, class Y>
  static void backward(const L& layer, At& at, X x, Y y, Y dy, Y dx) {
    layer.backward(at, x, y, dy, dx);
  }
  template <class At, class X, class Y>
  static void release(const L& layer, At& at, X x, Y dx) { layer.release(at, x, dx); }
};

}  // namespace streambp
