// What `at` is while a forward is written down: its slots as variables.
#pragma once

#include <tuple>

#include "../split/slot.hpp"
#include "operations.hpp"

namespace streambp::autodiff {

enum class phase : unsigned char { remember, forward };

template <class Slots, phase When>
class recorder {
 public:
  recorder(graph& into, const Slots& slots) : graph_(&into), slots_(&slots) {}

  // A parameter as a variable; of a memory the rows that are seen, for attend.
  template <class Tag>
  auto operator[](Tag) const {
    constexpr int i = index<Tag>();
    constexpr slot_kind kind = std::tuple_element_t<i, Slots>::kind;
    static_assert(
        kind == slot_kind::parameter || kind == slot_kind::shared || kind == slot_kind::memory,
        "a forward whose backward is derived names parameters and memory as at[tag]; what "
        "it computes on the way needs no slot, and a carry is at.states(tag) or at.recur");
    const auto& slot = std::get<i>(*slots_);
    if constexpr (kind == slot_kind::memory) {
      static_assert(When == phase::forward, "remember writes memory by at.write(tag, rows)");
      return seen_rows{graph_, i, slot.cols};
    } else {
      return variable(*graph_, graph_->parameter(i, slot.rows, slot.cols));
    }
  }

  // The chunk's own rows of a memory, in remember. Throws shape_error.
  template <class Tag>
  void write(Tag, variable rows) const {
    static_assert(When == phase::remember, "at.write belongs into remember(at, x)");
    expect_kind<Tag, slot_kind::memory>();
    const auto& slot = std::get<index<Tag>()>(*slots_);
    if (rows.cols() != slot.cols)
      throw shape_error(sentence("at.write: rows of ", rows.cols(), " columns into ", Tag::name,
                                 " of ", slot.cols, "; they are alike"));
    const int a = rows.in(*graph_);
    graph_->append({.op = operation::output, .a = a, .cols = slot.cols, .slot = index<Tag>()});
  }

  template <class Tag>
  carried_state states(Tag) const {
    expect_kind<Tag, slot_kind::carry>();
    static_assert(When == phase::forward, "a carry belongs into forward(at, x)");
    const auto& slot = std::get<index<Tag>()>(*slots_);
    return {graph_, index<Tag>(), slot.rows * slot.cols};
  }

  // h[t] = step(h[t - 1]), row after row, along each segment. The step may name rows from outside:
  // it gets their row t. What does not depend on h[t - 1] is faster outside. Throws shape_error.
  template <class Tag, class Step>
  variable recur(Tag tag, const Step& step) const {
    const carried_state state = states(tag);
    graph& g = *graph_;
    if (g.open_region != 0)
      throw shape_error(
          "at.recur: a recurrence within the step of another one; begin it outside of the step");
    g.open_region = ++g.regions;
    const int before = g.append({.op = operation::before, .cols = state.cols, .slot = state.slot});
    const variable after = step(variable(g, before));
    if (after.cols() != state.cols)
      throw shape_error(sentence("at.recur: the step gives ", after.cols(), " columns, ", Tag::name,
                                 " has ", state.cols));
    const int a = after.in(g);
    const int n = g.append(
        {.op = operation::recur, .a = a, .b = before, .cols = state.cols, .slot = state.slot});
    g.open_region = 0;
    return {g, n};
  }

 private:
  template <class Tag>
  static constexpr int index() {
    constexpr int i = slot_count<Slots>::template index<Tag>();
    static_assert(i >= 0, "no slot has this tag: add it to the layer's slots()");
    return i;
  }
  template <class Tag, slot_kind Kind>
  static constexpr void expect_kind() {
    static_assert(std::tuple_element_t<index<Tag>(), Slots>::kind == Kind,
                  "at.write is for memory slots, at.states and at.recur for carries");
  }

  graph* graph_;
  const Slots* slots_;
};

}  // namespace streambp::autodiff
