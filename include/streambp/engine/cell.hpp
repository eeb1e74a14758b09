// Where the slots and values of one section live.
#pragma once

#include <array>
#include <vector>

#include "../core/arena.hpp"
#include "../schedule/section_list.hpp"
#include "../schedule/snapshots.hpp"
#include "row_store.hpp"

namespace streambp {

// Value and gradient rows of a slot. saved, keepable and scratch hold one chunk; memory holds the
// prefix and all tokens; a carry holds one state a row, as many as snapshots keep, and two
// gradients.
template <class Scalar>
struct slot_cell {
  view<Scalar> value, gradient;
  row_store<Scalar>* store = nullptr;  // of a memory's or context's rows; null: they lie there
  view<const Scalar> given;            // a parameter, whose gradient is above
  view<Scalar> kept;                   // keepable rows of all tokens, if the plan keeps them
  view<const Scalar> initial;          // a carry's state before the first token, if given
  view<Scalar> d_initial;
  view<Scalar> ends;  // a carry's state after each segment with children
  view<Scalar> d_ends;
};

template <class Scalar>
struct section_cell {
  std::vector<slot_cell<Scalar>> slots;                // as section_instance::slots
  std::array<view<Scalar>, program::most> value{};     // of one chunk
  std::array<view<Scalar>, program::most> gradient{};  // of one chunk

  section_cell() = default;
  explicit section_cell(const section_instance& of) : slots(of.slots.size()) {}
};

// Calls f(slot_info, slot_cell) for every slot of the section's operators, in order.
template <class Scalar, class F>
void for_each_slot(const section_instance& section, section_cell<Scalar>& cell, F&& f) {
  for (std::size_t k = 0; k < section.slots.size(); ++k) f(section.slots[k], cell.slots[k]);
}

// The memory that one half of an operator writes is the one that its other half reads.
template <class Scalar>
void share_memory(const section_instance& section, const section_cell<Scalar>& from,
                  section_cell<Scalar>& to) {
  for (std::size_t k = 0; k < from.slots.size(); ++k)
    if (section.slots[k].boundary &&
        (section.slots[k].kind == slot_kind::memory || section.slots[k].kind == slot_kind::total)) {
      to.slots[k].value = from.slots[k].value;
      to.slots[k].gradient = from.slots[k].gradient;
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
  position parents = 0;     // segments with children
  position context = 0;     // tokens of the other stream
  position head_chunk = 0;  // rows of the largest head chunk
  bool fuses_head = false;  // rows and their gradient stand apart
};

// What lives from a chunk's forward to its backward: saved slots and the values that backward
// reads. `result`: the section's output stays too, for the section after it.
template <class Scalar>
void place_chunk(arena& from, const section_instance& section, const layout_shape& shape,
                 bool result, bool keeps_outputs, section_cell<Scalar>& cell) {
  const program& p = *section.steps;
  for (int v = 1; v < p.values; ++v)
    if (p.lasts(v) || (v == p.result && result))
      cell.value[v] = from.take<Scalar>(shape.chunk, section.widths[v]);
  for_each_slot(section, cell, [&](const slot_info& slot, auto& own) {
    if (slot.kind == slot_kind::saved || (slot.kind == slot_kind::keepable && !keeps_outputs))
      own.value = from.take<Scalar>(shape.chunk, slot.cols);
  });
}

// What lives within one visit of a chunk: other values, gradients, scratch. Operators share
// scratch.
template <class Scalar>
void place_working(arena& from, const section_instance& section, const layout_shape& shape,
                   bool result, section_cell<Scalar>& cell) {
  const program& p = *section.steps;
  const auto storage = p.gradient_storage();
  for (int v = 1; v < p.values; ++v)
    if (!p.lasts(v) && !(v == p.result && result))
      cell.value[v] = from.take<Scalar>(shape.chunk, section.widths[v]);
  for (int v = 0; v < p.values; ++v)
    if (storage.alias[v] == v && v != p.result)
      cell.gradient[v] = from.take<Scalar>(shape.chunk, section.widths[v]);
  const std::size_t mark = from.used();
  std::size_t most = mark;
  int last = -1;
  for_each_slot(section, cell, [&](const slot_info& slot, auto& own) {
    if (slot.op != last) {
      most = std::max(most, from.used());
      from.rewind(mark);
      last = slot.op;
    }
    if (slot.kind == slot_kind::scratch) own.value = from.take<Scalar>(shape.chunk, slot.cols);
    if (slot.kind == slot_kind::workspace) own.value = from.take<Scalar>(shape.threads, slot.cols);
  });
  from.advance(std::max(most, from.used()));
}

// Memories and carries: what a stage hands from chunk to chunk. `values` or `gradients` alone, as
// the two have different lifetimes.
template <class Scalar>
void place_state(arena& from, const section_instance& section, const layout_shape& shape,
                 bool values, bool gradients, section_cell<Scalar>& cell) {
  for_each_slot(section, cell, [&](const slot_info& slot, auto& own) {
    if (slot.boundary) return;  // share_memory brings it
    position value_rows = 0, gradient_rows = 0;
    switch (slot.kind) {
      case slot_kind::memory:
        value_rows = gradient_rows = shape.prefix + shape.tokens;
        break;
      case slot_kind::carry:
        value_rows = shape.states.rows();
        gradient_rows = 2;
        break;
      case slot_kind::total:
        value_rows = gradient_rows = shape.segments;
        break;
      case slot_kind::context:
        value_rows = gradient_rows = shape.context;
        break;
      default:
        return;
    }
    const position width = slot.rows * slot.cols;
    if (values) own.value = from.take<Scalar>(value_rows, width);
    if (gradients) own.gradient = from.take<Scalar>(gradient_rows, width);
    if (slot.kind != slot_kind::carry) return;
    if (values) own.ends = from.take<Scalar>(shape.parents, width);
    if (gradients) own.d_ends = from.take<Scalar>(shape.parents, width);
  });
}

// Tallies live as long as the step.
template <class Scalar>
void place_tallies(arena& from, const section_instance& section, section_cell<Scalar>& cell) {
  for_each_slot(section, cell, [&](const slot_info& slot, auto& own) {
    if (slot.kind != slot_kind::tally) return;
    own.value = from.take<Scalar>(1, slot.cols);
    own.gradient = from.take<Scalar>(1, slot.cols);
  });
}

// Keepable rows of all tokens.
template <class Scalar>
void place_kept(arena& from, const section_instance& section, const layout_shape& shape,
                section_cell<Scalar>& cell) {
  for_each_slot(section, cell, [&](const slot_info& slot, auto& own) {
    if (slot.kind == slot_kind::keepable) own.kept = from.take<Scalar>(shape.tokens, slot.cols);
  });
}

}  // namespace streambp
