// The customization point for layers. The primary template adopts a layer's members; for a type
// that cannot be edited, specialize it as adapted_traits. Library code goes through the trait only.
//
// A layer has
//   slots() or slots(in)       what it keeps (split/slot.hpp)
//   features(in)               width of its output; absent: its input's. Throws shape_error
//   sees                       row, past or all; absent: derived from the slots
//   forward(at, x, y)          the read phase. y (rows, out) is assigned
//   backward(at, x, y, dy, dx) adds to dx, to parameter gradients, to gradients of rows seen
// and, if it has memory or total slots,
//   remember(at, x)            writes its own rows of the memory
//   release(at, x, dx)         its rows' memory gradient is final: once through the projections
// and, if it has context slots (memory of another stream, whose rows are c),
//   remember_context(at, c), release_context(at, c, dc)   the same for rows of the other stream
// and, if it has tally slots,
//   side_loss(at)              returns what the tallies add to the loss; assigns their gradients
// Or it has a forward that returns its result, forward(x) entry by entry or forward(at, x), and
// with memory a remember(at, x) that calls at.write(tag, rows): then backward and release are
// derived (autodiff/derived.hpp). `backward_reads_input` and `backward_reads_output` say (when
// false) that x or y holds nothing in backward; a layer of token ids sets `takes_tokens` and gets
// them as x. `counts_flops` says that it touches data through primitives only, so that the planner
// may send it rows without data; the FLOPs of any other layer are neither planned nor counted.
#pragma once

#include <tuple>
#include <utility>

#include "../split/dependency.hpp"
#include "../split/slot.hpp"

namespace streambp {

template <class L>
struct layer_traits {
  using adopts = L;  // whose members these are

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
                                    count::of(slot_kind::memory) + count::of(slot_kind::total) > 0,
                                    count::of(slot_kind::tally) > 0,
                                    count::of(slot_kind::context) > 0};

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
  static constexpr bool host_only = [] {
    if constexpr (requires { L::host_only; })
      return bool(L::host_only);
    else
      return !counts_flops;
  }();
  static constexpr const char* name() {
    if constexpr (requires {
                    typename std::bool_constant<(static_cast<const char*>(L::name) != nullptr)>;
                  })
      return L::name;
    else
      return "layer";
  }

  template <class At, class X>
  requires requires(const L& layer, At& at, X x) { layer.remember(at, x); }
  static void remember(const L& layer, At& at, X x) { layer.remember(at, x); }
  template <class At, class X, class Y>
  requires requires(const L& layer, At& at, X x, Y y) { layer.forward(at, x, y); }
  static void forward(const L& layer, At& at, X x, Y y) { layer.forward(at, x, y); }
  template <class At, class X, class Y, class D>
  requires requires(const L& layer, At& at, X x, Y y, D dx) { layer.backward(at, x, y, y, dx); }
  static void backward(const L& layer, At& at, X x, Y y, Y dy, D dx) {
    layer.backward(at, x, y, dy, dx);
  }
  template <class At, class X, class D>
  requires requires(const L& layer, At& at, X x, D dx) { layer.release(at, x, dx); }
  static void release(const L& layer, At& at, X x, D dx) { layer.release(at, x, dx); }
  template <class At, class X>
  requires requires(const L& layer, At& at, X c) { layer.remember_context(at, c); }
  static void remember_context(const L& layer, At& at, X c) { layer.remember_context(at, c); }
  template <class At, class X, class D>
  requires requires(const L& layer, At& at, X c, D dc) { layer.release_context(at, c, dc); }
  static void release_context(const L& layer, At& at, X c, D dc) {
    layer.release_context(at, c, dc);
  }
  template <class At>
  requires requires(const L& layer, At& at) { layer.side_loss(at); }
  static double side_loss(const L& layer, At& at) { return layer.side_loss(at); }
};

// Traits of a foreign type by way of an adapter: an ordinary layer, Adapter{foreign}, which may
// hold a reference.
//   template <>
//   struct streambp::layer_traits<foreign> : streambp::adapted_traits<foreign, adapter> {};
template <class L, class Adapter>
struct adapted_traits : layer_traits<Adapter> {
  using through = layer_traits<Adapter>;

  static constexpr auto slots(const L& layer, position in) {
    return through::slots(Adapter{layer}, in);
  }
  static constexpr position features(const L& layer, position in) {
    return through::features(Adapter{layer}, in);
  }
  static void remember(const L& layer, auto& at, auto x) requires requires(const Adapter& a) {
    through::remember(a, at, x);
  }
  { through::remember(Adapter{layer}, at, x); }
  static void forward(const L& layer, auto& at, auto x, auto y) requires
      requires(const Adapter& a) {
    through::forward(a, at, x, y);
  }
  { through::forward(Adapter{layer}, at, x, y); }
  static void backward(const L& layer, auto& at, auto x, auto y, auto dy, auto dx) requires
      requires(const Adapter& a) {
    through::backward(a, at, x, y, dy, dx);
  }
  { through::backward(Adapter{layer}, at, x, y, dy, dx); }
  static void release(const L& layer, auto& at, auto x, auto dx) requires
      requires(const Adapter& a) {
    through::release(a, at, x, dx);
  }
  { through::release(Adapter{layer}, at, x, dx); }
  static void remember_context(const L& layer, auto& at, auto c) requires
      requires(const Adapter& a) {
    through::remember_context(a, at, c);
  }
  { through::remember_context(Adapter{layer}, at, c); }
  static void release_context(const L& layer, auto& at, auto c, auto dc) requires
      requires(const Adapter& a) {
    through::release_context(a, at, c, dc);
  }
  { through::release_context(Adapter{layer}, at, c, dc); }
  static double side_loss(const L& layer, auto& at) requires requires(const Adapter& a) {
    through::side_loss(a, at);
  }
  { return through::side_loss(Adapter{layer}, at); }
};

}  // namespace streambp
