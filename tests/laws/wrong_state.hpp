// h[t] = h[t-1] / 2 + x[t], y = h: a carry, right and with one fault at a time.
#pragma once

#include <streambp/core/packed.hpp>
#include <streambp/layers/compose.hpp>
#include <streambp/split/slot.hpp>
#include <vector>

namespace streambp {

enum class state_fault : unsigned char {
  none,
  forgets_part,       // of what a row's gradient hands to the row before
  forgets_at_chunks,  // hands no gradient from chunk to chunk
  forgets_initial,    // no gradient for the state that a sample starts from
  crosses_samples,    // starts a sample from the state of the one before
  keeps_nothing,      // for segments that go on from where this one ends
  assigns_d_before,   // where samples share the state that they start from
};

struct wrong_state {
  static constexpr tag<"state"> state{};
  static constexpr const char* name = "state";

  position width = 0;
  state_fault fault{};

  auto slots() const { return std::tuple{carry(state, 1, width)}; }

  void forward(auto& at, auto x, auto y) const {
    const auto states = at.states(state);
    for (position j = 0; j < width; ++j) {
      auto last = y(0, j) = 0;
      for (const piece& p : at.pieces()) {
        const auto* before = states.before(p);
        auto h = before ? before[j] : 0;
        if (fault == state_fault::crosses_samples && p.row > 0) h = last;
        for (position i = p.row; i < p.last(); ++i) y(i, j) = h = h / 2 + x(i, j);
        last = h;
        if (auto* kept = states.kept(p); kept && fault != state_fault::keeps_nothing) kept[j] = h;
        if (auto* after = states.handed_on(p)) after[j] = h;
      }
    }
  }

  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    const auto states = at.states(state);
    for (position j = 0; j < width; ++j)
      at.pieces().descending([&](const piece& p) {
        const auto* after = states.d_after(p);
        auto dh = after && fault != state_fault::forgets_at_chunks ? after[j] : 0;
        for (position i = p.last(); i-- > p.row;) {
          dh += dy(i, j);
          dx(i, j) += dh;
          dh /= fault == state_fault::forgets_part ? 4 : 2;
        }
        auto* before = states.d_before(p);
        if (!before || (fault == state_fault::forgets_initial && p.start == 0)) return;
        before[j] = fault == state_fault::assigns_d_before ? dh : before[j] + dh;
      });
  }
};

}  // namespace streambp
