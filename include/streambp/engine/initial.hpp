// The states of a section that a caller may give: memory rows of a prefix, carries before the first
// token.
#pragma once

#include "cell.hpp"

namespace streambp {

namespace detail {

// Calls f(operator_cell, slot index, offset, size, whether a carry) for every state of a section
// that a caller may give: offsets into batch::initial.
template <class Section, class Cell, class F>
position for_each_initial(const Section& section, const section_instance& instance, Cell& cell,
                          position prefix, position offset, F&& f) {
  for_each_slot(section, instance, [&](auto op, auto k, const auto& slot) {
    constexpr slot_kind kind = std::decay_t<decltype(slot)>::kind;
    // A memory between two halves is the remember half's.
    constexpr bool elsewhere =
        Section::part == half::read && Section::steps.operators[op].split.forces_cut();
    if constexpr (!elsewhere && (kind == slot_kind::memory || kind == slot_kind::carry)) {
      const position size = kind == slot_kind::memory ? prefix * slot.cols : slot.rows * slot.cols;
      f(std::get<op>(cell.operators), k, offset, size, kind == slot_kind::carry);
      offset += size;
    }
  });
  return offset;
}

}  // namespace detail

}  // namespace streambp
