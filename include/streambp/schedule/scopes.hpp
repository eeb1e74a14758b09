// Where each layer of a composition stands by the names that were given: named("trunk", f).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../model/compose.hpp"

namespace streambp {

// Of a layer in a repeat: names outside of it, and inside. Each ends with a point or is empty.
struct layer_scope {
  std::string outside{}, inside{};
};

namespace detail {

struct scope_walk {
  std::vector<layer_scope> found{};
  std::set<std::string> names{};  // by where they stand
  int repeats = 0;

  template <class L>
  void visit(const L&, const layer_scope& at, int) {
    found.push_back(at);
  }
  template <class A, class B>
  void visit(const sequential<A, B>& s, const layer_scope& at, int repeat) {
    visit(s.first, at, repeat);
    visit(s.second, at, repeat);
  }
  template <class F>
  void visit(const residual_of<F>& r, const layer_scope& at, int repeat) {
    visit(r.inner, at, repeat);
  }
  template <class F>
  void visit(const frozen_of<F>& f, const layer_scope& at, int repeat) {
    visit(f.inner, at, repeat);
  }
  template <class F>
  void visit(const repeat_of<F>& r, const layer_scope& at, int) {
    visit(r.inner, {at.inside, ""}, ++repeats);
  }
  template <class F>
  void visit(const named_of<F>& n, const layer_scope& at, int repeat) {
    const std::string here = at.inside + n.name;
    if (!names.insert(sentence(repeat, ".", here)).second)
      throw shape_error(
          sentence("named: two parts of the model are named '", here, "'; give one another name"));
    visit(n.inner, {at.outside, here + "."}, repeat);
  }
  template <class... F>
  void visit(const heads_of<F...>& h, const layer_scope& at, int repeat) {
    std::apply([&](const auto&... f) { (visit(f, at, repeat), ...); }, h.each);
  }
};

}  // namespace detail

// Of all layers, in the order of the forward pass; those of a repeat once. Throws shape_error when
// two names are the same in one place.
template <class Model>
std::vector<layer_scope> scopes_of(const Model& model) {
  detail::scope_walk walk;
  walk.visit(model, {}, 0);
  return walk.found;
}

}  // namespace streambp
