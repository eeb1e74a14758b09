// Where the states of a carry come from and go to: chunk to chunk, parent to child.
#pragma once

#include "../core/packed.hpp"
#include "../core/view.hpp"
#include "expect_shape.hpp"

namespace streambp {

// One state is a row. Ascending, a piece starts from before(piece) and leaves its last state at
// kept(piece) and handed_on(piece); descending, it starts from d_after(piece) and adds the
// gradient of the state it started from to d_before(piece).
template <class Scalar>
struct carry_rows {
  const packed* samples = nullptr;
  row_range chunk{};
  view<Scalar> in, d_in;       // before the chunk's first row
  view<Scalar> out, d_out;     // after its last
  view<const Scalar> initial;  // of a sample without parent; no data: zero
  view<Scalar> d_initial;      // no data: not wanted
  view<Scalar> ends, d_ends;   // (parents, width): the last state of each segment with children

  // Null: zero.
  const Scalar* before(const piece& p) const {
    if (p.start > 0) return in.data;
    if (const position parent = samples->parent(p.segment); parent >= 0)
      return ends.row(samples->parent_number(parent));
    return initial.data;
  }
  // Null: nobody reads it.
  Scalar* kept(const piece& p) const {
    return ends_segment(p) && number(p) >= 0 ? ends.row(number(p)) : nullptr;
  }
  Scalar* handed_on(const piece& p) const {
    return chunk.first + p.last() == chunk.last && !ends_segment(p) ? out.data : nullptr;
  }
  // Null: zero. A segment that goes on has no child yet, one that ends hands nothing on.
  const Scalar* d_after(const piece& p) const {
    if (ends_segment(p)) return number(p) >= 0 ? d_ends.row(number(p)) : nullptr;
    return d_out.data;
  }
  // Added to: samples and siblings share it. In the middle of a segment it holds zeros. Null: not
  // wanted.
  Scalar* d_before(const piece& p) const {
    if (p.start > 0) return d_in.data;
    if (const position parent = samples->parent(p.segment); parent >= 0)
      return d_ends.row(samples->parent_number(parent));
    return d_initial.data;
  }

 private:
  bool ends_segment(const piece& p) const {
    return chunk.first + p.last() == samples->segment(p.segment).last;
  }
  position number(const piece& p) const { return samples->parent_number(p.segment); }
};

// States with room for `width` numbers each: those that there are.
template <class S>
void expect_states(const char* primitive, const carry_rows<S>& states, side width) {
  const auto each = [&](const char* name, const auto& given) {
    if (given.rows > 0 && given.cols > 0)
      expect_at_least(primitive, name, given, {"rows", 1}, width);
  };
  each("states.in", states.in);
  each("states.d_in", states.d_in);
  each("states.out", states.out);
  each("states.d_out", states.d_out);
  each("states.initial", states.initial);
  each("states.d_initial", states.d_initial);
  each("states.ends", states.ends);
  each("states.d_ends", states.d_ends);
}

}  // namespace streambp
