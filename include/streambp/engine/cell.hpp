// Where the slots and values of one section live.
#pragma once

#include <array>
#include <tuple>

#include "../core/arena.hpp"
#include "../schedule/instances.hpp"
#include "../schedule/snapshots.hpp"

namespace streambp {

// By slot: value and gradient rows. saved, keepable and scratch hold one chunk; memory holds the
// prefix and all tokens; a carry holds one state a row, as many as snapshots keep, and two
// gradients.
template <class Scalar, class Slots>
struct operator_cell {
  static constexpr std::size_t slots = std::tuple_size_v<Slots>;
  static constexpr auto is_memory = []<class... Slot>(std::type_identity<std::tuple<Slot...>>) {
    return std::array<bool, slots>{
        (Slot::kind == slot_kind::memory || Slot::kind == slot_kind::total)...};
  }(std::type_identity<Slots>{});
  std::array<view<Scalar>, slots> value{};
  std::array<view<Scalar>, slots> gradient{};
  std::array<view<Scalar>, slots> kept{};  // keepable rows of all tokens, if the plan keeps them
  std::array<view<const Scalar>, slots>
      initial{};  // a carry's state before the first token, if given
  std::array<view<Scalar>, slots> d_initial{};
  std::array<view<Scalar>, slots> ends{};  // a carry's state after each segment with children
  std::array<view<Scalar>, slots> d_ends{};
};

template <class Scalar, class Leaves>
struct operator_cells;
template <class Scalar, class... P>
struct operator_cells<Scalar, std::tuple<P...>> {
  using type = std::tuple<
      operator_cell<Scalar, typename layer_traits<typename P::layer_type>::slot_types>...>;
};

template <class Scalar, class Section>
struct section_cell {
  using section = Section;
  typename operator_cells<Scalar, typename Section::leaf_types>::type operators;
  std::array<view<Scalar>, program::most> value{};     // of one chunk
  std::array<view<Scalar>, program::most> gradient{};  // of one chunk
};

// Calls f(op, slot_index, slot) for every slot of the section's operators, in order.
template <class Section, class F>
void for_each_slot(const Section& section, const section_instance& instance, F&& f) {
  for_each_index<Section::steps.size>([&](auto i) {
    constexpr step st = Section::steps.steps[i];
    if constexpr (st.op >= 0) {
      const auto& layer = std::get<st.op>(section.leaves).layer;
      const auto slots =
          layer_traits<std::decay_t<decltype(layer)>>::slots(layer, instance.widths[st.in]);
      for_each_index<int(std::tuple_size_v<decltype(slots)>)>(
          [&](auto k) { f(std::integral_constant<int, st.op>{}, k, std::get<k>(slots)); });
    }
  });
}

// The memory that one half of an operator writes is the one that its other half reads.
template <class Operator>
void share_memory(const Operator& from, Operator& to) {
  for (std::size_t k = 0; k < Operator::slots; ++k)
    if (Operator::is_memory[k]) {
      to.value[k] = from.value[k];
      to.gradient[k] = from.gradient[k];
    }
}

// Shapes that one layout of cells is made for.
struct layout_shape {
  position tokens = 0;
  position prefix = 0;  // memory rows ahead of the first token
  position chunk = 0;   // rows of the largest chunk
  snapshots states{};
  int threads = 1;
  position segments = 0;
  position parents = 0;  // segments with children
  position context = 0;  // tokens of the other stream
};

// What lives from a chunk's forward to its backward: saved slots and the values that backward
// reads. `result`: the section's output stays too, for the section after it.
template <class Scalar, class Section>
void place_chunk(arena& from, const Section& section, const section_instance& instance,
                 const layout_shape& shape, bool result, bool keeps_outputs,
                 section_cell<Scalar, Section>& cell) {
  constexpr program p = Section::steps;
  for (int v = 1; v < p.values; ++v)
    if (p.lasts(v) || (v == p.result && result))
      cell.value[v] = from.take<Scalar>(shape.chunk, instance.widths[v]);
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
    if (kind == slot_kind::saved || (kind == slot_kind::keepable && !keeps_outputs))
      std::get<op>(cell.operators).value[k] = from.take<Scalar>(shape.chunk, slot.cols);
  });
}

// What lives within one visit of a chunk: other values, gradients, scratch. Operators share
// scratch.
template <class Scalar, class Section>
void place_working(arena& from, const Section& section, const section_instance& instance,
                   const layout_shape& shape, bool result, section_cell<Scalar, Section>& cell) {
  constexpr program p = Section::steps;
  constexpr auto storage = p.gradient_storage();
  for (int v = 1; v < p.values; ++v)
    if (!p.lasts(v) && !(v == p.result && result))
      cell.value[v] = from.take<Scalar>(shape.chunk, instance.widths[v]);
  for (int v = 0; v < p.values; ++v)
    if (storage.alias[v] == v && v != p.result)
      cell.gradient[v] = from.take<Scalar>(shape.chunk, instance.widths[v]);
  const std::size_t mark = from.used();
  std::size_t most = mark;
  int last = -1;
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
    if (op != last) {
      most = std::max(most, from.used());
      from.rewind(mark);
      last = op;
    }
    if (kind == slot_kind::scratch)
      std::get<op>(cell.operators).value[k] = from.take<Scalar>(shape.chunk, slot.cols);
    if (kind == slot_kind::workspace)
      std::get<op>(cell.operators).value[k] = from.take<Scalar>(shape.threads, slot.cols);
  });
  from.advance(std::max(most, from.used()));
}

// Memories and carries: what a stage hands from chunk to chunk. `values` or `gradients` alone, as
// the two have different lifetimes.
template <class Scalar, class Section>
void place_state(arena& from, const Section& section, const section_instance& instance,
                 const layout_shape& shape, bool values, bool gradients,
                 section_cell<Scalar, Section>& cell) {
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
    auto& own = std::get<op>(cell.operators);
    if constexpr (Section::part == half::read && Section::steps.operators[op].split.forces_cut()) {
      return;  // share_memory brings it
    } else if constexpr (kind == slot_kind::memory) {
      if (values) own.value[k] = from.take<Scalar>(shape.prefix + shape.tokens, slot.cols);
      if (gradients) own.gradient[k] = from.take<Scalar>(shape.prefix + shape.tokens, slot.cols);
    } else if constexpr (kind == slot_kind::carry) {
      const position width = slot.rows * slot.cols;
      if (values) own.value[k] = from.take<Scalar>(shape.states.rows(), width);
      if (gradients) own.gradient[k] = from.take<Scalar>(2, width);
      if (values) own.ends[k] = from.take<Scalar>(shape.parents, width);
      if (gradients) own.d_ends[k] = from.take<Scalar>(shape.parents, width);
    } else if constexpr (kind == slot_kind::total || kind == slot_kind::context) {
      const position rows = kind == slot_kind::total ? shape.segments : shape.context;
      if (values) own.value[k] = from.take<Scalar>(rows, slot.cols);
      if (gradients) own.gradient[k] = from.take<Scalar>(rows, slot.cols);
    }
  });
}

// Tallies live as long as the step.
template <class Scalar, class Section>
void place_tallies(arena& from, const Section& section, const section_instance& instance,
                   section_cell<Scalar, Section>& cell) {
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::tally) {
      std::get<op>(cell.operators).value[k] = from.take<Scalar>(1, slot.cols);
      std::get<op>(cell.operators).gradient[k] = from.take<Scalar>(1, slot.cols);
    }
  });
}

// Keepable rows of all tokens.
template <class Scalar, class Section>
void place_kept(arena& from, const Section& section, const section_instance& instance,
                const layout_shape& shape, section_cell<Scalar, Section>& cell) {
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    if constexpr (std::decay_t<decltype(slot)>::kind == slot_kind::keepable)
      std::get<op>(cell.operators).kept[k] = from.take<Scalar>(shape.tokens, slot.cols);
  });
}

}  // namespace streambp
