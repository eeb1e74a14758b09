// Law: the declaration is true. A row's result depends on no row outside what the layer says that
// it sees, a row's gradient on none of the rows that do not see it; and a call reads nothing that
// it does not declare, writes nothing that is not its own.
#pragma once

#include <utility>

#include "subject.hpp"

namespace streambp::laws {

// Results with poison behind everything undeclared: NaN once, a number once.
inline void check_watched(report& r, subject& of, const given& data, const step_plan& plan,
                          const outcome& unwatched) {
  for (const double poison : {std::nan(""), 7.5}) {
    of.watched = {true, poison, {}};
    const outcome o = of.run(plan)->step(data);
    if (const auto where = other_bits(unwatched, o, data.samples); !where.empty())
      r.add(law::declaration,
            sentence("with ", poison, " in all that a call does not declare to read, ", where, "; ",
                     words(plan)));
    if (!of.watched.written.empty()) r.add(law::memory, of.watched.written);
    of.watched = {};
  }
}

// Whether row b may depend on row a.
inline bool may_see(reach sees, const packed& samples, position b, position a) {
  if (b == a) return true;
  if (b < 0) return false;
  return sees != reach::row && samples.segment_at(a) == samples.segment_at(b) &&
         (sees == reach::all || a < b);
}

// Every sample without its end: `left(rows)` of its rows are left.
template <class Left>
given shortened(const given& all, const Left& left_of) {
  given d = all;
  std::vector<position> offsets{0}, rows;
  for (position s = 0; s < all.samples.segments(); ++s) {
    const row_range own = all.samples.segment(s);
    const position left = left_of(own.rows());
    for (position t = own.first; t < own.first + left; ++t) rows.push_back(t);
    offsets.push_back(offsets.back() + left);
  }
  d.samples = packed(std::move(offsets));
  const auto cut = [&](auto& v) {
    const position cols = position(v.size()) / all.samples.tokens();
    auto old = std::exchange(v, {});
    for (const position t : rows)
      if (cols > 0) v.insert(v.end(), old.begin() + t * cols, old.begin() + (t + 1) * cols);
  };
  cut(d.rows);
  cut(d.tokens);
  cut(d.c);
  return d;
}

// A row does not know how many come after it: of shorter samples, what is left keeps its bits; in a
// tile that is shorter, too, its numbers, as a product with fewer rows may round otherwise.
template <class Left>
void check_length(report& r, subject& of, const given& data, const outcome& before,
                  const tolerance& allow, bool whole_tiles, const Left& left_of) {
  const given shorter = shortened(data, left_of);
  const step_plan plan = of.streamed(shorter.samples, shorter.prefix, shorter.beside);
  const outcome o = of.run(plan)->step(shorter);
  for (std::size_t k = 0; k < o.tensors.size(); ++k) {
    const tensor& t = o.tensors[k];
    if (t.kind != tensor_kind::output &&
        !(t.kind == tensor_kind::input && of.split.sees == reach::row))
      continue;
    tensor kept = t;  // the rows that are left, of the longer samples
    for (position s = 0; s < shorter.samples.segments(); ++s) {
      const row_range to = shorter.samples.segment(s), from = data.samples.segment(s);
      std::copy_n(before.tensors[k].data.begin() + from.first * t.cols, to.rows() * t.cols,
                  kept.data.begin() + to.first * t.cols);
    }
    if (const auto where = whole_tiles
                               ? other_bits(kept, t, shorter.samples, [](position) { return true; })
                               : beyond(kept, t, allow.rounding * of.epsilon(), 0, shorter.samples);
        !where.empty())
      r.add(law::declaration, sentence("when samples lose their last tokens, ", where,
                                       ", though no row may notice what follows; ", words(plan)));
  }
}

inline void check_length(report& r, subject& of, const given& data, const outcome& before,
                         const tolerance& allow, position tile) {
  if (of.split.sees == reach::all) return;
  check_length(r, of, data, before, allow, true,
               [tile](position rows) { return rows <= tile ? rows : (rows - 1) / tile * tile; });
  check_length(r, of, data, before, allow, false,
               [](position rows) { return rows - (rows + 2) / 3; });
}

// Moves one row of x, then one of dy, and looks at who noticed.
inline void check_reach(report& r, subject& of, const given& data, const step_plan& plan,
                        const outcome& before) {
  const packed& samples = data.samples;
  const reach sees = of.split.sees;
  const auto run = of.run(plan);
  const auto compare = [&](const outcome& o, tensor_kind kind, position moved, const char* what,
                           const auto& may_notice) {
    for (std::size_t k = 0; k < o.tensors.size(); ++k) {
      if (o.tensors[k].kind != kind) continue;
      const auto where = other_bits(before.tensors[k], o.tensors[k], samples,
                                    [&](position row) { return !may_notice(row); });
      if (!where.empty())
        r.add(law::declaration, sentence("when ", what, " of token ", moved, " moves, ", where,
                                         ", though it may not notice"));
    }
  };
  for (position row = 0; row < samples.tokens(); row += 1 + row % 3 + samples.tokens() / 64) {
    given moved = data;
    for (position j = 0; j < of.features; ++j) {
      double& x = moved.rows[std::size_t(row * of.features + j)];
      x = of.rounded(-x + 0.5);
    }
    if (of.features == 0) {
      std::int32_t& id = moved.tokens[std::size_t(row)];
      id = id == 0 ? 1 : 0;
    }
    // The log-probability of a label comes from the row before it.
    compare(run->step(moved), tensor_kind::output, row, "x",
            [&](position b) { return may_see(sees, samples, b - of.scores, row); });
    if (of.scores) continue;
    moved = data;
    for (position j = 0; j < of.results; ++j) moved.c[std::size_t(row * of.results + j)] += 1;
    compare(run->step(moved), tensor_kind::input, row, "dy",
            [&](position b) { return may_see(sees, samples, row, b); });
  }
}

}  // namespace streambp::laws
