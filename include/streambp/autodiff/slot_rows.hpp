// The slots of a layer by their number, as a graph names them.
#pragma once

#include <array>
#include <tuple>

#include "../core/view.hpp"
#include "../primitives/carry_rows.hpp"
#include "../split/slot.hpp"

namespace streambp::autodiff {

template <class Scalar, class Slots>
struct slot_rows {
  static constexpr std::size_t count = std::tuple_size_v<Slots>;
  std::array<view<const Scalar>, count>
      value{};                                 // parameter: the matrix; memory: all rows that exist
  std::array<view<Scalar>, count> gradient{};  // no rows: frozen
  std::array<view<Scalar>, count> own{};       // the chunk's rows of a memory
  std::array<view<Scalar>, count> d_own{};
  std::array<carry_rows<Scalar>, count> states{};

  template <class At>
  explicit slot_rows(At& at) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (take<std::tuple_element_t<I, Slots>>(at, I), ...);
    }
    (std::make_index_sequence<count>{});
  }

 private:
  template <class Slot, class At>
  void take(At& at, std::size_t i) {
    using tag = typename Slot::tag;
    if constexpr (Slot::kind == slot_kind::carry) {
      states[i] = at.states(tag{});
    } else if constexpr (Slot::kind == slot_kind::parameter || Slot::kind == slot_kind::shared ||
                         Slot::kind == slot_kind::memory) {
      value[i] = at[tag{}];
      gradient[i] = at.d(tag{});
      if constexpr (Slot::kind == slot_kind::memory)
        own[i] = at.own(at[tag{}]), d_own[i] = at.own(gradient[i]);
    }
  }
};

}  // namespace streambp::autodiff
