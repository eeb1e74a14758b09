// One section at one chunk: its program's steps, forward and backward. The order of steps is read
// off the program; which of them run depends on the visit's purpose.
#pragma once

#include "../schedule/section.hpp"
#include "../schedule/visit.hpp"
#include "site.hpp"

namespace streambp {

// Tokens are the input of a model's first layer when it takes them; rows are everything else.
template <class Scalar>
struct section_input {
  std::span<const std::int32_t> tokens{};
  view<const Scalar> rows{};
};

namespace detail {

// The number of an operator's first slot among its section's.
template <class Leaves, int Op>
constexpr int first_slot() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (0 + ... +
            int(std::tuple_size_v<typename layer_traits<
                    typename std::tuple_element_t<I, Leaves>::layer_type>::slot_types>));
  }
  (std::make_index_sequence<Op>{});
}

// Operator Op of a section at one chunk, for one call: what it is lent is given back after.
// `instance`: number of the section in the model.
template <int Op, class Device, class Section>
auto site_of(Device& on, const Section&, section_cell<typename Device::scalar>& cell,
             const chunk_place& chunk, std::uint64_t instance, const visit& why, bool wants_output,
             bool remembers = false) {
  using leaves = typename Section::leaf_types;
  using layer = typename std::tuple_element_t<Op, leaves>::layer_type;
  return site<Device, layer>{.on = on,
                             .chunk = chunk,
                             .cells = cell.slots.data() + first_slot<leaves, Op>(),
                             .instance = instance * program::most + std::uint64_t(Op),
                             .wants_output = wants_output,
                             .keeps_outputs = why.keeps_outputs,
                             .restored = why.restored(),
                             .saves = why.saves(),
                             .tallies = why.first(),
                             .remembers = remembers};
}

// Layers that touch data themselves see none of the planner's rows, and their FLOPs stay uncounted.
template <class Layer, class Device, class Call>
void count_if_it_counts(Device& on, const Call& call) {
  if constexpr (layer_traits<Layer>::counts_flops) {
    call();
  } else if (!on.counts_only()) {
    const big_count before = on.flops();
    call();
    on.reset_flops(before);
  }
}

// Each of a layer's functions exists once in the binary, so that a replay has the forward's bits.
template <class Layer, class At, class X>
[[gnu::noinline]] void call_remember(const Layer& layer, At& at, X x) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::remember(layer, at, x); });
}
template <class Layer, class At, class X, class Y>
[[gnu::noinline]] void call_forward(const Layer& layer, At& at, X x, Y y) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::forward(layer, at, x, y); });
}
template <class Layer, class At, class X, class Y, class D>
[[gnu::noinline]] void call_backward(const Layer& layer, At& at, X x, Y y, Y dy, D dx) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::backward(layer, at, x, y, dy, dx); });
}
template <class Layer, class At, class X, class D>
[[gnu::noinline]] void call_release(const Layer& layer, At& at, X x, D dx) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::release(layer, at, x, dx); });
}

template <class Layer, class At, class X>
[[gnu::noinline]] void call_remember_context(const Layer& layer, At& at, X c) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::remember_context(layer, at, c); });
}
template <class Layer, class At, class C, class D>
[[gnu::noinline]] void call_release_context(const Layer& layer, At& at, C c, D dc) {
  count_if_it_counts<Layer>(at.on, [&] { layer_traits<Layer>::release_context(layer, at, c, dc); });
}

template <bool TakesTokens, class Scalar>
auto input_of(const section_input<Scalar>& in, view<const Scalar> x) {
  if constexpr (TakesTokens)
    return in.tokens;
  else
    return x;
}

}  // namespace detail

// out: rows of the result, where the caller wants them; ignored when the visit does not want any.
template <class Section, class Device>
void run_forward(Device& on, const Section& section, section_cell<typename Device::scalar>& cell,
                 const chunk_place& chunk, std::uint64_t instance,
                 section_input<typename Device::scalar> in, view<typename Device::scalar> out,
                 const visit& why) {
  using scalar = typename Device::scalar;
  constexpr program p = Section::steps;
  static constexpr auto state = p.feeds_state(false), first_state = p.feeds_state(true);
  static constexpr auto wanted = p.feeds_backward(true), unwanted = p.feeds_backward(false);
  const program::visited& of_this = why.result    ? wanted
                                    : why.saves() ? unwanted
                                    : why.first() ? first_state
                                                  : state;

  const position rows = chunk.rows.rows();
  std::array<view<scalar>, program::most> value;  // but the first, which is given
  for (int v = 1; v < p.values; ++v) value[v] = cell.value[v].middle_rows(0, rows);
  if (why.result && p.result != 0) value[p.result] = out;
  const auto read = [&](int v) { return v == 0 ? in.rows : view<const scalar>(value[v]); };

  for_each_index<p.size>([&](auto i) {
    constexpr step st = p.steps[i];
    if constexpr (st.op < 0) {
      if (of_this.runs[i]) sum(on, read(st.skip), read(st.in), value[st.out]);
    } else {
      const auto& layer = std::get<st.op>(section.leaves).layer;
      const auto place = [&](bool remembers) {
        return detail::site_of<st.op>(on, section, cell, chunk, instance, why, of_this.output[i],
                                      remembers);
      };
      const auto x = detail::input_of<p.operators[st.op].takes_tokens>(in, read(st.in));
      if constexpr (p.remembers(i)) {
        if (why.remembers()) {
          auto at = place(true);
          detail::call_remember(layer, at, x);
        }
      }
      if constexpr (p.runs_forward(i)) {
        if (of_this.runs[i] || why.saves() || (why.first() && p.tallies(i))) {
          auto at = place(false);
          detail::call_forward(layer, at, x, value[st.out]);
        }
      }
    }
  });
}

// Rows c of the other stream, for the section's context slots: written to their memory, or, when dc
// is given, their gradients taken through and added to dc.
template <class Section, class Device>
void run_context(Device& on, const Section& section, section_cell<typename Device::scalar>& cell,
                 const chunk_place& chunk, std::uint64_t instance,
                 view<const typename Device::scalar> c, view<typename Device::scalar> dc) {
  constexpr program p = Section::steps;
  for_each_index<p.size>([&](auto i) {
    constexpr step st = p.steps[i];
    if constexpr (st.op >= 0 && p.operators[st.op < 0 ? 0 : st.op].split.crosses) {
      const auto& layer = std::get<st.op>(section.leaves).layer;
      auto at = detail::site_of<st.op>(on, section, cell, chunk, instance, visit{purpose::open},
                                       true, dc.rows == 0);
      if (dc.rows > 0)
        detail::call_release_context(layer, at, c, dc);
      else
        detail::call_remember_context(layer, at, c);
    }
  });
}

// What the section's tallies add to the loss.
template <class Section, class Device>
double side_losses(Device& on, const Section& section, section_cell<typename Device::scalar>& cell,
                   const chunk_place& chunk, std::uint64_t instance) {
  constexpr program p = Section::steps;
  double value = 0;
  for_each_index<p.size>([&](auto i) {
    constexpr step st = p.steps[i];
    if constexpr (st.op >= 0 && p.tallies(i)) {
      const auto& layer = std::get<st.op>(section.leaves).layer;
      auto at =
          detail::site_of<st.op>(on, section, cell, chunk, instance, visit{purpose::open}, true);
      value += layer_traits<std::decay_t<decltype(layer)>>::side_loss(layer, at);
    }
  });
  return value;
}

// dy: the result's gradient; read, and for a residual changed into the input's in place. Returns
// the gradient of the input (rows of dy, or of the section's own); none for tokens.
template <class Section, class Device>
view<typename Device::scalar> run_backward(Device& on, const Section& section,
                                           section_cell<typename Device::scalar>& cell,
                                           const chunk_place& chunk, std::uint64_t instance,
                                           section_input<typename Device::scalar> in,
                                           view<const typename Device::scalar> out,
                                           view<typename Device::scalar> dy, const visit& why) {
  using scalar = typename Device::scalar;
  constexpr program p = Section::steps;
  static constexpr auto storage = p.gradient_storage();

  const position rows = chunk.rows.rows();
  std::array<view<const scalar>, program::most> value;
  std::array<view<scalar>, program::most> gradient;
  value[0] = in.rows;
  for (int v = 1; v < p.values; ++v) value[v] = cell.value[v].middle_rows(0, rows);
  if (p.result != 0 && out.rows > 0) value[p.result] = out;
  for (int v = 0; v < p.values; ++v)
    gradient[v] =
        storage.alias[v] == p.result ? dy : cell.gradient[storage.alias[v]].middle_rows(0, rows);
  for (int v = 0; v < p.values; ++v)
    if (storage.alias[v] == v && v != p.result && !(v == 0 && p.operators[0].takes_tokens))
      zero(on, gradient[v]);

  for_each_index<p.size>([&](auto reversed) {
    constexpr int i = p.size - 1 - reversed;
    constexpr step st = p.steps[i];
    if constexpr (st.op < 0) {
      if constexpr (storage.copies[i]) add(on, gradient[st.out], gradient[st.in]);
      if constexpr (storage.adds[i]) add(on, gradient[st.out], gradient[st.skip]);
    } else {
      const auto& layer = std::get<st.op>(section.leaves).layer;
      const auto place = [&] {
        return detail::site_of<st.op>(on, section, cell, chunk, instance, why, true);
      };
      const auto x = detail::input_of<p.operators[st.op].takes_tokens>(in, value[st.in]);
      if constexpr (p.runs_forward(i)) {
        auto at = place();
        detail::call_backward(layer, at, x, value[st.out], view<const scalar>(gradient[st.out]),
                              gradient[st.in]);
      }
      if constexpr (p.remembers(i)) {
        auto at = place();
        detail::call_release(layer, at, x, gradient[st.in]);
      }
    }
  });
  return gradient[0];
}

}  // namespace streambp
