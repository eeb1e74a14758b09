// A layer under watch: whatever a call does not declare to read holds poison while it runs, and what
// it has no business to write is compared afterwards.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../core/error.hpp"
#include "../layers/compose.hpp"
#include "../traits/layer_traits.hpp"
#include "guarded.hpp"

namespace streambp::laws {

// Off, a watched layer is the layer. Poison that reaches a result changes it from one poison to
// another.
struct watch {
  bool on = false;
  double poison = 0;
  std::string written;  // the first wrong write

  void expect(bool right, const char* layer, const char* call, const char* what) {
    if (!right && written.empty()) written = sentence(layer, ": ", call, " writes ", what);
  }
};

template <class L>
struct watched {
  L layer;
  watch* by = nullptr;
};

// Puts every layer of a composition under watch.
template <class L>
auto under_watch(const L& layer, watch& by) {
  return watched<L>{layer, &by};
}
template <class A, class B>
auto under_watch(const sequential<A, B>& s, watch& by) {
  auto first = under_watch(s.first, by);
  auto second = under_watch(s.second, by);
  return sequential<decltype(first), decltype(second)>{first, second};
}
template <class F>
auto under_watch(const residual_of<F>& r, watch& by) {
  auto inner = under_watch(r.inner, by);
  return residual_of<decltype(inner)>{inner};
}
template <class F>
auto under_watch(const frozen_of<F>& f, watch& by) {
  auto inner = under_watch(f.inner, by);
  return frozen_of<decltype(inner)>{inner};
}
template <class F>
auto under_watch(const repeat_of<F>& r, watch& by) {
  auto inner = under_watch(r.inner, by);
  return repeat_of<decltype(inner)>{r.count, inner};
}

// One call of a layer: hides on construction, restores and compares in finish().
template <class L, class At>
class watched_call {
 public:
  using scalar = typename std::decay_t<At>::scalar;
  using traits = layer_traits<L>;

  watched_call(const watched<L>& w, At& at, const char* call) : w_(w), at_(at), call_(call) {
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::scratch || kind == slot_kind::workspace)
        fill(at_[tag], w_.by->poison);
      if constexpr (kind == slot_kind::parameter || kind == slot_kind::shared)
        constants_.emplace_back(view<scalar>(at_[tag]));
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

  // Memory rows that the chunk does not see; `own_only`: all but its own, which `forgets` empties.
  void hide_memory(bool own_only, bool forgets, bool values_constant, bool gradients) {
    const auto seen = own_only ? own_rows() : seen_rows();
    each([&](auto tag, auto kind) {
      if constexpr (kind == slot_kind::memory) {
        if (forgets) fill(at_.own(at_[tag]), w_.by->poison);
        hidden_.emplace_back(at_[tag], seen, w_.by->poison);
        if (values_constant) constants_.emplace_back(view<scalar>(at_[tag]));
        if (gradients) hidden_.emplace_back(at_.d(tag), seen, w_.by->poison);
      }
    });
  }

  void finish() {
    const char* name = traits::name();
    for (auto& c : constants_) w_.by->expect(c.unchanged(), name, call_, "to a parameter or to memory values");
    for (auto& h : hidden_) w_.by->expect(h.restore(), name, call_, "memory rows that are not its own");
  }

 private:
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
    const position end = traits::split.sees == reach::all
                             ? std::numeric_limits<position>::max()
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
};

}  // namespace streambp::laws

namespace streambp {

// Forwards everything to the layer; each call through a watched_call while the watch is on.
template <class L>
struct layer_traits<laws::watched<L>> : layer_traits<L> {
  using traits = layer_traits<L>;
  using watched = laws::watched<L>;

  static constexpr auto slots(const watched& w, position in) { return traits::slots(w.layer, in); }
  static constexpr position features(const watched& w, position in) {
    return traits::features(w.layer, in);
  }

  template <class At, class X>
    requires requires(const L& layer, At& at, X x) { traits::remember(layer, at, x); }
  static void remember(const watched& w, At& at, X x) {
    if (!w.by->on || at.on.counts_only()) return traits::remember(w.layer, at, x);
    laws::watched_call<L, At> call(w, at, "remember");
    laws::guarded_rows given(x, w.by->poison);
    call.hide_memory(true, true, false, false);
    traits::remember(w.layer, at, given.rows());
    w.by->expect(given.untouched(), traits::name(), "remember", "to x, or outside it");
    call.finish();
  }

  template <class At, class X, class Y>
    requires requires(const L& layer, At& at, X x, Y y) { traits::forward(layer, at, x, y); }
  static void forward(const watched& w, At& at, X x, Y y) {
    if (!w.by->on || at.on.counts_only()) return traits::forward(w.layer, at, x, y);
    laws::watched_call<L, At> call(w, at, "forward");
    laws::guarded_rows given(x, w.by->poison), result(y, w.by->poison, true);
    call.forget_saved();
    call.hide_memory(false, false, true, false);
    traits::forward(w.layer, at, given.rows(), result.rows());
    w.by->expect(given.untouched(), traits::name(), "forward", "to x, or outside it");
    w.by->expect(result.give_back(y), traits::name(), "forward", "outside y");
    call.finish();
  }

  template <class At, class X, class Y>
    requires requires(const L& layer, At& at, X x, Y y) {
      traits::backward(layer, at, x, y, y, y);
    }
  static void backward(const watched& w, At& at, X x, Y y, Y dy, Y dx) {
    if (!w.by->on || at.on.counts_only()) return traits::backward(w.layer, at, x, y, dy, dx);
    laws::watched_call<L, At> call(w, at, "backward");
    laws::guarded_rows given(x, w.by->poison, !traits::backward_reads_input);
    laws::guarded_rows result(y, w.by->poison, !traits::backward_reads_output);
    laws::guarded_rows d_result(dy, w.by->poison), d_given(dx, w.by->poison);
    call.hide_memory(false, false, true, true);
    traits::backward(w.layer, at, given.rows(), result.rows(), d_result.rows(), d_given.rows());
    w.by->expect(given.untouched() && result.untouched() && d_result.untouched(), traits::name(),
                 "backward", "to x, y or dy, or outside them");
    w.by->expect(d_given.give_back(dx), traits::name(), "backward", "outside dx");
    call.finish();
  }

  template <class At, class X, class Y>
    requires requires(const L& layer, At& at, X x, Y dx) { traits::release(layer, at, x, dx); }
  static void release(const watched& w, At& at, X x, Y dx) {
    if (!w.by->on || at.on.counts_only()) return traits::release(w.layer, at, x, dx);
    laws::watched_call<L, At> call(w, at, "release");
    laws::guarded_rows given(x, w.by->poison), d_given(dx, w.by->poison);
    call.hide_memory(true, false, false, true);
    traits::release(w.layer, at, given.rows(), d_given.rows());
    w.by->expect(given.untouched(), traits::name(), "release", "to x, or outside it");
    w.by->expect(d_given.give_back(dx), traits::name(), "release", "outside dx");
    call.finish();
  }
};

}  // namespace streambp
