// Layers under watch: what a watch asks, and a composition with each of its layers under one.
#pragma once

#include <string>

#include "../core/error.hpp"
#include "../model/compose.hpp"
#include "ordered_tasks.hpp"

namespace streambp::laws {

// Off, a watched layer is the layer. Poison that reaches a result changes it from one poison to
// another.
struct watch {
  bool on = false;
  double poison = 0;
  std::string written{};           // the first wrong write
  double lift = 0;                 // in dx before a call that adds to it; taken away behind it
  ordered_tasks* tasks = nullptr;  // run the tasks of the layer's loops

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
template <class... F>
auto under_watch(const heads_of<F...>& h, watch& by) {
  return std::apply([&](const auto&... f) { return heads(under_watch(f, by)...); }, h.each);
}

template <class F>
auto under_watch(const named_of<F>& n, watch& by) {
  auto inner = under_watch(n.inner, by);
  return named_of<decltype(inner)>{n.name, inner};
}

}  // namespace streambp::laws
