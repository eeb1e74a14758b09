// One call of a layer under watch: whatever it does not declare to read holds poison while it runs,
// and what it has no business to write is compared afterwards.
#pragma once

#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../core/packed.hpp"
#include "../traits/layer_traits.hpp"
#include "guarded.hpp"
#include "watch.hpp"

namespace streambp::laws {

// Hides on construction, restores and compares in finish(). Slots of the chunk and parameter
// gradients are moved between margins for the time of the call.
template <class L, class At>
class watched_call {
 public:
  using scalar = typename std::decay_t<At>::scalar;
  using traits = layer_traits<L>;

  watched_call(const watched<L>& w, At& at, const char* call) : w_(w), at_(at), call_(call) {
    each([&](auto tag, auto kind) {
      constexpr int i = traits::count::template index<decltype(tag)>();
      if constexpr (kind == slot_kind::parameter || kind == slot_kind::shared) {
        constants_.emplace_back(at_[tag]);
        if (at_.trains(tag))
          move(at_.cells[i].gradient, at_.cells[i].gradient.rows);
        else
          spare(at_.cells[i].gradient, at_[tag]);
      }
      if constexpr (kind == slot_kind::saved || kind == slot_kind::scratch)
        move(at_.cells[i].value, at_.rows());
      if constexpr (kind == slot_kind::keepable)
        if (!at_.keeps_outputs) move(at_.cells[i].value, at_.rows());
      if constexpr (kind == slot_kind::workspace) move(at_.cells[i].value, at_.cells[i].value.rows);
      if constexpr (kind == slot_kind::scratch || kind == slot_kind::workspace)
        fill(at_[tag], w_.by->poison);
    });
  }

  // Saved rows are forward's to write.
  void forget_saved() {
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::saved)
        fill(at_[tag], w_.by->poison);
      else if constexpr (kind == slot_kind::keepable)
        if (!at_.restored) fill(at_[tag], w_.by->poison);
    });
  }

  // Before remember: the chunk's own rows are to be written, all others are nobody's business.
  void hide_memory_but_own() {
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::memory) {
        fill(at_.own(at_[tag]), w_.by->poison);
        hidden_.emplace_back(at_[tag], own_rows(), w_.by->poison);
      }
    });
  }
  // Before forward and backward: rows that the chunk does not see.
  void hide_unseen_memory() {
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::memory) {
        hidden_.emplace_back(at_[tag], seen_rows(), w_.by->poison);
        constants_.emplace_back(at_[tag]);
      }
    });
  }
  // Before backward, of what the chunk does not see; before release, of all but its own rows.
  void hide_memory_gradients(bool own_only) {
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::memory)
        hidden_.emplace_back(at_.d(tag), own_only ? own_rows() : seen_rows(), w_.by->poison);
    });
  }

  void finish() {
    const char* const name = traits::name();
    for (auto& c : constants_)
      w_.by->expect(c.unchanged(), name, call_,
                    "to a parameter or to memory that is there to be read");
    for (auto& h : hidden_)
      w_.by->expect(h.restore(), name, call_, "memory rows that are not its own");
    for (auto& s : spared_) {
      const bool untouched = std::all_of(s.entries.begin(), s.entries.end(),
                                         [](scalar v) { return v == untouched_entry; });
      w_.by->expect(untouched, name, call_,
                    "to the gradient of a frozen parameter: ask at.trains(tag) first");
      *s.slot = s.home;
    }
    for (auto& m : moved_) {
      w_.by->expect(m.between_margins.give_back(m.home), name, call_, "outside a slot");
      *m.slot = m.home;
    }
  }

 private:
  struct moved {
    view<scalar>* slot;
    view<scalar> home;
    guarded_rows<scalar> between_margins;
  };

  // A gradient that nobody wants: no rows, in front of a place where writing does no harm.
  struct spared {
    view<scalar>* slot;
    view<scalar> home;
    std::vector<scalar> entries;
  };
  static constexpr scalar untouched_entry = scalar(0.140625);

  void spare(view<scalar>& slot, view<const scalar> parameter) {
    spared_.push_back(
        {&slot, slot,
         std::vector<scalar>(std::size_t(parameter.rows * parameter.cols), untouched_entry)});
    slot = {spared_.back().entries.data(), 0, parameter.cols};
  }

  void move(view<scalar>& slot, position rows) {
    if (slot.data == nullptr) return;
    const view<scalar> used = slot.middle_rows(0, rows);
    moved_.push_back({&slot, slot, guarded_rows<scalar>(used, w_.by->poison)});
    slot = moved_.back().between_margins.rows();
  }

  template <class F>
  static void each(const F& f) {
    [&]<class... Slot>(std::type_identity<std::tuple<Slot...>>) {
      (f(typename Slot::tag{}, std::integral_constant<slot_kind, Slot::kind>{}), ...);
    }(std::type_identity<typename traits::slot_types>{});
  }

  std::vector<row_range> own_rows() const {
    const position p = at_.chunk.prefix;
    return {{p + at_.chunk.rows.first, p + at_.chunk.rows.last}};
  }
  std::vector<row_range> seen_rows() const {
    const position end = traits::split.sees == reach::all ? std::numeric_limits<position>::max()
                                                          : at_.chunk.prefix + at_.chunk.rows.last;
    std::vector<row_range> seen;
    for (const piece& p : at_.pieces())
      for (const row_range& r : p.seen) seen.push_back({r.first, std::min(r.last, end)});
    return seen;
  }

  const watched<L>& w_;
  At& at_;
  const char* call_;
  std::vector<snapshot<scalar>> constants_;
  std::vector<hidden_rows<scalar>> hidden_;
  std::vector<moved> moved_;
  std::vector<spared> spared_;
};

}  // namespace streambp::laws
