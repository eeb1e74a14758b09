// h[t] = h[t-1] / 2 + x[t], y = h: a carry, right and with one fault at a time.
#pragma once

#include <streambp/core/packed.hpp>
#include <streambp/model/compose.hpp>
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
  hands_on_early,     // the state before the chunk's last row
  drops_last_sample,  // no gradient for the state that the last sample starts from
  first_starts,       // only the first sample reads the state that it starts from
  behind_one_token,   // goes on from a sample of one token into the next
  forgets_dy_of_last  // the gradient of the sample's last row goes to no row before it
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
      bool one = false;  // the piece before is a sample of one token
      for (const piece& p : at.pieces()) {
        const auto* before = states.before(p);
        auto h = before ? before[j] : 0;
        if (fault == state_fault::crosses_samples && p.row > 0) h = last;
        if (fault == state_fault::first_starts && p.start == 0 && p.segment > 2) h = 0;
        if (fault == state_fault::behind_one_token && one) h = last;
        one = p.rows == 1 && p.start == 0;
        for (position i = p.row; i < p.last(); ++i) y(i, j) = h = h / 2 + x(i, j);
        last = h;
        if (auto* kept = states.kept(p); kept && fault != state_fault::keeps_nothing) kept[j] = h;
        if (auto* after = states.handed_on(p))
          after[j] = fault == state_fault::hands_on_early && p.rows > 1 ? y(p.last() - 2, j) : h;
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
          const bool ends = p.start + i - p.row + 1 == at.chunk.samples->segment(p.segment).rows();
          if (fault == state_fault::forgets_dy_of_last && ends) dh = 0;
        }
        auto* before = states.d_before(p);
        if (!before || (fault == state_fault::forgets_initial && p.start == 0)) return;
        const bool last = at.chunk.samples->segment(p.segment).last == at.chunk.samples->tokens();
        if (fault == state_fault::drops_last_sample && p.start == 0 && last) return;
        before[j] = fault == state_fault::assigns_d_before ? dh : before[j] + dh;
      });
  }
};

// y = gain ∘ h, h as above. With the fault, a frozen layer hands no gradient to the states given.
struct gained_state {
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"state"> state{};
  static constexpr tag<"h"> h{};
  static constexpr const char* name = "gained";

  position width = 0;
  bool frozen_drops_initial = false;

  auto slots() const {
    return std::tuple{parameter(gain, 1, width, ones), carry(state, 1, width), saved(h, width)};
  }

  void forward(auto& at, auto x, auto y) const {
    const auto states = at.states(state);
    for (const piece& p : at.pieces())
      for (position j = 0; j < width; ++j) {
        const auto* before = states.before(p);
        auto last = before ? before[j] : 0;
        for (position i = p.row; i < p.last(); ++i) {
          at[h](i, j) = last = last / 2 + x(i, j);
          y(i, j) = at[gain](0, j) * last;
        }
        if (auto* kept = states.kept(p)) kept[j] = last;
        if (auto* after = states.handed_on(p)) after[j] = last;
      }
  }

  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    const auto states = at.states(state);
    if (at.trains(gain))
      for (position i = dy.rows; i-- > 0;)
        for (position j = 0; j < width; ++j) at.d(gain)(0, j) += dy(i, j) * at[h](i, j);
    at.pieces().descending([&](const piece& p) {
      for (position j = 0; j < width; ++j) {
        const auto* after = states.d_after(p);
        auto dh = after ? after[j] : 0;
        for (position i = p.last(); i-- > p.row;) {
          dh += at[gain](0, j) * dy(i, j);
          dx(i, j) += dh;
          dh /= 2;
        }
        auto* before = states.d_before(p);
        if (before && !(frozen_drops_initial && !at.trains(gain) && p.start == 0)) before[j] += dh;
      }
    });
  }
};

}  // namespace streambp
