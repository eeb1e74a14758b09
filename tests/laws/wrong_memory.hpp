// v = x, y[t] = Σ v[s] / (1 + s) over the rows seen up to t: a memory, right and with one fault at
// a time.
#pragma once

#include <streambp/core/packed.hpp>
#include <streambp/model/compose.hpp>
#include <streambp/split/slot.hpp>

namespace streambp {

enum class memory_fault : unsigned char {
  none,
  assigns_dv,          // instead of adding
  reads_next,          // the row after its own, if the chunk has it
  reads_to_the_end,    // of its segment, whatever was written there
  forgets_prefix,      // no gradient for rows ahead of the sample's own
  ignores_parent,      // reads its prefix and its own segment only
  releases_twice,      // adds the memory's gradient to dx twice
  drops_last_sample,   // no gradient for the memory of the last sample's rows
  drops_first_row,     // none for a sample's first row, of chunks after the first
  prefix_of_first,     // only the first sample reads the prefix
  remembers_neighbour  // writes the row before its own, too
};

struct wrong_memory {
  static constexpr tag<"v"> v{};
  static constexpr const char* name = "memory";
  static constexpr reach sees = past;

  position width = 0;
  memory_fault fault{};

  auto slots() const { return std::tuple{memory(v, width)}; }

  void remember(auto& at, auto x) const {
    const auto own = at.own(at[v]);
    const bool spills = fault == memory_fault::remembers_neighbour && at.chunk.rows.first > 0;
    for (position j = 0; j < width; ++j) {
      for (position i = 0; i < x.rows; ++i) own(i, j) = x(i, j);
      if (spills) own(-1, j) = own(-1, j) + 1;
    }
  }

  // Calls f(row of the memory, its weight) for what row i of the piece sees.
  template <class F>
  void each(auto& at, const piece& p, position i, const F& f) const {
    position end = at.chunk.prefix + at.chunk.rows.first + i + 1;
    if (fault == memory_fault::reads_next && i + 1 < p.last()) ++end;
    if (fault == memory_fault::reads_to_the_end) end = p.seen.back().last;
    position place = 0;
    auto seen = p.seen;
    if (fault == memory_fault::ignores_parent) seen[1] = {};
    if (fault == memory_fault::prefix_of_first && p.segment > 1) seen[0] = {};
    for (const row_range& r : seen)
      for (position m = r.first; m < std::min(r.last, end); ++m) f(m, 1.0 / double(1 + place++));
  }

  void forward(auto& at, auto, auto y) const {
    const auto values = at[v];
    for (const piece& p : at.pieces())
      for (position i = p.row; i < p.last(); ++i)
        for (position j = 0; j < width; ++j) {
          y(i, j) = 0;
          each(at, p, i,
               [&](position m, auto w) { y(i, j) += values(m, j) * decltype(y(0, 0) + 0)(w); });
        }
  }
  void backward(auto& at, auto, auto, auto dy, auto) const {
    const auto dv = at.d(v);
    at.pieces().descending([&](const piece& p) {
      for (position i = p.last(); i-- > p.row;)
        for (position j = 0; j < width; ++j)
          each(at, p, i, [&](position m, auto w) {
            const auto d = dy(i, j) * decltype(dy(0, 0) + 0)(w);
            if (fault == memory_fault::forgets_prefix && m < at.chunk.prefix) return;
            const row_range own = at.chunk.samples->segment(p.segment);
            if (fault == memory_fault::drops_last_sample &&
                own.last == at.chunk.samples->tokens() && m >= at.chunk.prefix)
              return;
            if (fault == memory_fault::drops_first_row && p.start > 0 &&
                m == at.chunk.prefix + own.first)
              return;
            if (fault == memory_fault::assigns_dv)
              dv(m, j) = d;
            else
              dv(m, j) += d;
          });
    });
  }
  void release(auto& at, auto, auto dx) const {
    const auto own = at.own(at.d(v));
    for (position i = 0; i < dx.rows; ++i)
      for (position j = 0; j < width; ++j)
        dx(i, j) += own(i, j) * (fault == memory_fault::releases_twice ? 2 : 1);
  }
};

}  // namespace streambp
