// The slots of a layer by their number, as a graph names them.
#pragma once

#include <array>
#include <tuple>

#include "../core/view.hpp"
#include "../expression/graph.hpp"
#include "../primitives/carry_rows.hpp"
#include "../split/slot.hpp"

namespace streambp::autodiff {

template <class Scalar, class Slots>
struct slot_rows {
  static constexpr std::size_t count = std::tuple_size_v<Slots>;
  std::array<view<const Scalar>, count> value{};  // of a parameter
  std::array<view<Scalar>, count> gradient{};     // no rows: frozen
  // The chunk's rows of a memory that the graph writes; `d_own` in its backward.
  std::array<view<Scalar>, count> own{};
  std::array<view<Scalar>, count> d_own{};
  std::array<carry_rows<Scalar>, count> states{};

  template <class At>
  slot_rows(At& at, const graph& g, bool backward) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (take<std::tuple_element_t<I, Slots>>(at, I, g, backward), ...);
    }
    (std::make_index_sequence<count>{});
  }

 private:
  template <class Slot, class At>
  void take(At& at, std::size_t i, const graph& g, bool backward) {
    using tag = typename Slot::tag;
    if constexpr (Slot::kind == slot_kind::carry) {
      states[i] = at.states(tag{});
    } else if constexpr (Slot::kind == slot_kind::memory) {
      for (int n = 0; n < g.size; ++n)
        if (g[n].op == operation::output && g[n].slot == int(i)) {
          own[i] = at.own(tag{});
          if (backward) d_own[i] = at.d_own(tag{});
        }
    } else if constexpr (Slot::kind == slot_kind::parameter || Slot::kind == slot_kind::shared) {
      value[i] = at[tag{}];
      gradient[i] = at.d(tag{});
    }
  }
};

}  // namespace streambp::autodiff
