// The states of a carry from chunk to chunk, as an engine keeps them.
#pragma once

#include <streambp/primitives/carry_rows.hpp>
#include <vector>

#include "guarded.hpp"

namespace streambp {

template <class S>
struct carried {
  const packed& samples;
  std::vector<position> edges;  // of chunks
  guarded<S> values, gradients, ends, d_ends;
  view<const S> initial;
  view<S> d_initial;

  carried(const packed& samples, std::vector<position> edges, position width,
          view<const S> initial = {}, view<S> d_initial = {})
      : samples(samples),
        edges(std::move(edges)),
        values(position(this->edges.size()), width),
        gradients(position(this->edges.size()), width),
        ends(samples.parent_count(), width),
        d_ends(samples.parent_count(), width),
        initial(initial),
        d_initial(d_initial) {
    for (const guarded<S>* added_to : {&gradients, &d_ends})
      for (position i = 0; i < (**added_to).rows; ++i)
        std::fill_n((**added_to).row(i), width, S(0));
  }

  position chunks() const { return position(edges.size()) - 1; }
  row_range rows(position chunk) const {
    return {edges[std::size_t(chunk)], edges[std::size_t(chunk) + 1]};
  }
  piece_list pieces(position chunk) const { return {samples, rows(chunk)}; }
  carry_rows<S> at(position k) const {
    const auto row = [](const guarded<S>& of, position r) { return (*of).middle_rows(r, 1); };
    return {&samples,
            rows(k),
            row(values, k),
            row(gradients, k),
            row(values, k + 1),
            row(gradients, k + 1),
            initial,
            d_initial,
            *ends,
            *d_ends};
  }
  bool intact() const {
    return values.intact() && gradients.intact() && ends.intact() && d_ends.intact();
  }
};

}  // namespace streambp
