// What a layer keeps: each slot has a kind (in its type, the schedule sees it) and a width (in its
// value, the plan sees it).
#pragma once

#include <tuple>
#include <type_traits>

#include "../core/position.hpp"
#include "dependency.hpp"
#include "tag.hpp"

namespace streambp {

enum class slot_kind : unsigned char {
  parameter,  // (rows, cols), trained or frozen
  shared,     // another layer's parameter of the same tag, used a second time
  memory,     // cols a token, written by remember, read by rows that see it
  total,      // cols a segment, added up by remember, read by every row of the segment
  context,    // cols a token of another stream, written by remember_context
  tally,      // cols once, added up over all tokens for a side loss
  carry,      // (rows, cols) once, handed from row to row
  saved,      // cols a token, from forward to backward of a chunk
  keepable,   // like saved; may be kept from the first forward for all tokens
  scratch,    // cols a token of the chunk, within one call
  workspace   // cols a thread, within one call
};

// How parameters start.
struct initial_value {
  double mean = 0;
  double deviation = 0;
};
inline constexpr initial_value zeros{};
inline constexpr initial_value ones{1, 0};

// A tag is tag<"name">, or a type of its own with `static constexpr const char* name`.
template <class Tag, slot_kind Kind>
struct slot {
  using tag = Tag;
  static constexpr slot_kind kind = Kind;
  position rows = 1;
  position cols = 0;
  initial_value initial{};
};

template <class Tag>
constexpr slot<Tag, slot_kind::parameter> parameter(Tag, position rows, position cols,
                                                    initial_value initial) {
  return {rows, cols, initial};
}
template <class Tag>
constexpr slot<Tag, slot_kind::shared> shared_parameter(Tag, position rows, position cols) {
  return {rows, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::memory> memory(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::total> total(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::context> context(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::tally> tally(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::carry> carry(Tag, position rows, position cols) {
  return {rows, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::saved> saved(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::keepable> keepable(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::scratch> scratch(Tag, position cols) {
  return {1, cols};
}
template <class Tag>
constexpr slot<Tag, slot_kind::workspace> workspace(Tag, position cols) {
  return {1, cols};
}

// How many slots of a kind a tuple of slots has.
template <class Slots>
struct slot_count;
template <class... Slot>
struct slot_count<std::tuple<Slot...>> {
  static constexpr int of([[maybe_unused]] slot_kind kind) {
    return (0 + ... + int(Slot::kind == kind));
  }
  template <class Tag>
  static constexpr int index() {
    int found = -1, i = 0;
    ((found = std::is_same_v<typename Slot::tag, Tag> ? i : found, ++i), ...);
    return found;
  }
};

}  // namespace streambp
