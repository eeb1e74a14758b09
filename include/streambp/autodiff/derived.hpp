// The layer that a layer with a derived backward stands for: an adapter with all of its phases.
#pragma once

#include "../traits/layer_traits.hpp"
#include "derivable.hpp"
#include "pull.hpp"

namespace streambp::autodiff {

// Throws shape_error when two recurrences carry one state, or two rows are one memory.
inline void expect_one_writer(const graph& g) {
  const auto writes = [](const node& n) {
    return n.op == operation::scan || n.op == operation::recur ||
           (n.op == operation::output && n.slot >= 0);
  };
  for (int i = 0; i < g.size; ++i)
    for (int j = 0; j < i; ++j)
      if (writes(g[i]) && writes(g[j]) && g[i].slot == g[j].slot)
        throw shape_error(sentence("autodiff: slot ", g[i].slot,
                                   " of the layer is written twice; give "
                                   "each memory and each carry a slot of its own"));
}

// Of two reads of one memory, each adds its share to the memory's gradient once a chunk: the order
// would be the chunks'. Throws shape_error.
inline void expect_one_reader(const graph& g) {
  const auto reads = [](const node& n, int slot) {
    return n.op == operation::attend && (n.slot == slot || n.other_slot == slot);
  };
  for (int i = 0; i < g.size; ++i)
    for (int j = 0; j < i; ++j)
      for (const int slot : {g[i].slot, g[i].other_slot})
        if (reads(g[i], slot) && reads(g[j], slot))
          throw shape_error(sentence("attend: slot ", slot,
                                     " of the layer is read twice; write its rows to a second "
                                     "memory, which the second read takes"));
}

template <class L>
struct derived_facts {
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr const char* name = "layer";
};
template <class L>
requires requires { L::name; }
struct derived_facts<L> {
  static constexpr bool counts_flops = true, backward_reads_output = false;
  static constexpr const char* name = L::name;
};
// One node list a call: the same for every chunk. Throws shape_error when rows do not fit together.
template <phase When, class L>
graph recorded(const L& layer, position in) {
  graph g;
  const auto slots = listed_slots(layer, in);
  const recorder<listed_slots_of<L>, When> at(g, slots);
  const variable x(g, g.append({.op = operation::input, .cols = in}));
  try {
    if constexpr (When == phase::remember) {
      layer.remember(at, x);
    } else {
      const variable y = layer.forward(at, x);
      const int a = y.in(g);
      g.append({.op = operation::output, .a = a, .cols = y.cols()});
    }
    expect_one_writer(g);
    expect_one_reader(g);
  } catch (const shape_error& e) {
    throw shape_error(sentence(derived_facts<L>::name, ": ", e.what()));
  }
  return g;
}

template <class L>
struct derived_reach : derived_facts<L> {};
template <class L>
requires requires { L::sees; }
struct derived_reach<L> : derived_facts<L> {
  static constexpr auto sees = L::sees;
};

// y = f(x), entry by entry.
template <class L>
struct derived_entries : derived_reach<L> {
  const L& layer;

  explicit derived_entries(const L& layer) : layer(layer) {}

  void forward(auto& at, auto x, auto y) const {
    if (at.wants_output) map_entries(at.on, layer, x, y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    differentiate_entries(at.on, layer, x, dy, dx);
  }
};

template <class L>
struct derived_rows : derived_reach<L> {
  const L& layer;

  explicit derived_rows(const L& layer) : layer(layer) {}

  // Throws shape_error when the layer says otherwise than its forward.
  position features(position in) const {
    const graph g = recorded<phase::forward>(layer, in);
    const position cols = g[g.size - 1].cols;
    if constexpr (requires { layer.features(in); })
      if (const position said = layer.features(in); said != cols)
        throw shape_error(sentence(derived_facts<L>::name, ": features says ", said,
                                   ", its forward gives ", cols));
    return cols;
  }
  auto slots(position in) const {
    const graph g = recorded<phase::forward>(layer, in);
    tape_columns width = tape(g, true).width;
    if constexpr (names_remember<L>) {
      const graph memory = recorded<phase::remember>(layer, in);
      expect_apart(g, memory);
      int written = 0;
      for (int n = 0; n < memory.size; ++n) written += memory[n].op == operation::output;
      if (written != slot_count<listed_slots_of<L>>::of(slot_kind::memory))
        throw shape_error(sentence(derived_facts<L>::name, ": remember writes ", written, " of ",
                                   slot_count<listed_slots_of<L>>::of(slot_kind::memory),
                                   " memories; give each its rows by at.write(tag, rows)"));
      width.scratch = std::max(width.scratch, tape(memory, false).width.scratch);
    }
    return std::tuple_cat(listed_slots(layer, in), slots_for(width, tile_workspace(g)));
  }

  void forward(auto& at, auto x, auto y) const {
    const graph g = recorded<phase::forward>(layer, x.cols);
    const tape t(g, true);
    auto rows = rows_of(t, at, x, y, {}, {}, false);
    compute<sees_all, decltype(rows)>(rows).forward(at.wants_output);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    const graph g = recorded<phase::forward>(layer, x.cols);
    const tape t(g, true);
    auto rows = rows_of(t, at, x, {}, dx, dy, true);
    pull<sees_all, decltype(rows)>(rows).backward();
  }

  // A gradient is added up once a chunk in backward and once in release: of one parameter that both
  // give a share, the order would be the chunks'. Throws shape_error.
  static void expect_apart(const graph& a, const graph& b) {
    const auto read = [](const node& n) {
      return n.op == operation::parameter || n.op == operation::product;
    };
    for (int i = 0; i < a.size; ++i)
      for (int j = 0; j < b.size; ++j)
        if (read(a[i]) && read(b[j]) && a[i].slot == b[j].slot)
          throw shape_error(sentence(derived_facts<L>::name,
                                     ": remember and forward read the same "
                                     "parameter, slot ",
                                     a[i].slot,
                                     "; what both need, such as a norm, "
                                     "belongs into a layer of its own before this one"));
  }

 protected:
  static constexpr bool sees_all = [] {
    if constexpr (requires { L::sees; })
      return L::sees == reach::all;
    else
      return false;
  }();
  template <class At, class S = typename At::scalar>
  static auto rows_of(const tape& t, At& at, view<const S> x, view<S> y, view<S> dx,
                      view<const S> dy, bool backward) {
    return tape_rows<At, listed_slots_of<L>>(t, at, x, y, dx, dy, backward);
  }
};

template <class L>
struct derived_memory : derived_rows<L> {
  using derived_rows<L>::derived_rows;

  void remember(auto& at, auto x) const {
    const graph g = recorded<phase::remember>(this->layer, x.cols);
    const tape t(g, false);
    auto rows = this->rows_of(t, at, x, {}, {}, {}, false);
    compute<false, decltype(rows)>(rows).forward(true);
  }
  void release(auto& at, auto x, auto dx) const {
    const graph g = recorded<phase::remember>(this->layer, x.cols);
    const tape t(g, false);
    auto rows = this->rows_of(t, at, x, {}, dx, {}, true);
    pull<false, decltype(rows)>(rows).backward();
  }
};

template <class L>
struct derived_of {
  using type = derived_rows<L>;
};
template <class L>
requires names_remember<L>
struct derived_of<L> {
  using type = derived_memory<L>;
};
template <class L>
requires entry_forward<L>
struct derived_of<L> {
  using type = derived_entries<L>;
};
template <class L>
using derived = typename derived_of<L>::type;

}  // namespace streambp::autodiff

namespace streambp {

template <class L>
requires autodiff::derivable<L>
struct layer_traits<L> : adapted_traits<L, autodiff::derived<L>> {
};

}  // namespace streambp
