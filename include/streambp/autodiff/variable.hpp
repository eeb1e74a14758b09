// The rows that a forward computes with: each operation on them is written down in a graph.
#pragma once

#include <compare>
#include <concepts>
#include <type_traits>

#include "../expression/graph.hpp"

namespace streambp::autodiff {

// Rows of the chunk, one row for all of them (a parameter), or a number. Entry-wise operations take
// operands of equal width; one of width 1 goes with any.
class variable {
 public:
  variable(double number) : number_(number) {}
  variable(graph& of, int n) : graph_(&of), node_(n) {}

  position cols() const { return graph_ ? (*graph_)[node_].cols : 1; }
  graph* of() const { return graph_; }
  const node* where() const { return graph_ ? &(*graph_)[node_] : nullptr; }

  // Its node in a graph, as an operand. Throws shape_error for a parameter that is no single row.
  int in(graph& g) const {
    if (!graph_) return g.append({.op = operation::constant, .cols = 1, .constant = number_});
    if (g[node_].op == operation::parameter && g[node_].rows != 1)
      throw shape_error(
          sentence("autodiff: a parameter of ", g[node_].rows, " rows and ", cols(),
                   " columns among rows of the chunk; one of one row can stand there, "
                   "any other in matmul(x, parameter)"));
    return node_;
  }

  friend variable operator+(variable a, variable b) { return entries(operation::add, "+", a, b); }
  friend variable operator-(variable a, variable b) {
    return entries(operation::subtract, "-", a, b);
  }
  friend variable operator*(variable a, variable b) {
    return entries(operation::multiply, "*", a, b);
  }
  friend variable operator/(variable a, variable b) {
    return entries(operation::divide, "/", a, b);
  }
  friend variable max(variable a, variable b) { return entries(operation::max, "max", a, b); }
  friend variable min(variable a, variable b) { return entries(operation::min, "min", a, b); }
  // a where s > 0, b elsewhere.
  friend variable select(variable s, variable a, variable b) {
    graph& g = graph_of(s, a, b);
    const position cols = common("select", common("select", s.cols(), a.cols()), b.cols());
    const int sn = s.in(g), an = a.in(g), bn = b.in(g);
    return {g, g.append({.op = operation::select, .a = sn, .b = an, .c = bn, .cols = cols})};
  }
  // x, for which backward takes it for a constant.
  friend variable detach(variable x) {
    graph& g = graph_of(x);
    const int a = x.in(g);
    return {g, g.append({.op = operation::detach, .a = a, .cols = x.cols()})};
  }

  friend variable operator-(variable x) { return x.through(unary::negate); }
  friend variable exp(variable x) { return x.through(unary::exp); }
  friend variable expm1(variable x) { return x.through(unary::expm1); }
  friend variable log(variable x) { return x.through(unary::log); }
  friend variable log1p(variable x) { return x.through(unary::log1p); }
  friend variable tanh(variable x) { return x.through(unary::tanh); }
  friend variable sigmoid(variable x) { return x.through(unary::sigmoid); }
  friend variable silu(variable x) { return x.through(unary::silu); }
  friend variable gelu(variable x) { return x.through(unary::gelu); }
  friend variable relu(variable x) { return x.through(unary::relu); }
  friend variable square(variable x) { return x.through(unary::square); }
  friend variable sqrt(variable x) { return x.through(unary::sqrt); }
  friend variable abs(variable x) { return x.through(unary::abs); }
  friend variable softplus(variable x) { return x.through(unary::softplus); }
  friend variable log_sigmoid(variable x) { return -softplus(-x); }

  friend variable pow(variable x, double exponent) {
    graph& g = graph_of(x);
    const int a = x.in(g);
    return {g, g.append({.op = operation::power, .a = a, .cols = x.cols(), .constant = exponent})};
  }

  template <class Other>
  requires(std::convertible_to<Other, variable>) std::partial_ordering operator<=>(
      const Other&) const {
    return refuse_branch<Other>(), std::partial_ordering::unordered;
  }
  template <class Other>
  requires(std::convertible_to<Other, variable>) bool operator==(const Other&) const {
    return refuse_branch<Other>(), false;
  }
  template <std::same_as<bool> Bool>
  explicit operator Bool() const {
    return refuse_branch<Bool>(), false;
  }

  // The graph that the first of them which is no number belongs to.
  template <class... V>
  static graph& graph_of(const V&... v) {
    graph* g = nullptr;
    ((g = g ? g : v.of()), ...);
    if (!g) throw shape_error("autodiff: an operation on numbers alone; use the ones of <cmath>");
    return *g;
  }

 private:
  variable through(unary f) const {
    graph& g = graph_of(*this);
    const int a = in(g);
    return {g, g.append({.op = operation::unary, .function = f, .a = a, .cols = cols()})};
  }
  static variable entries(operation op, const char* name, variable a, variable b) {
    graph& g = graph_of(a, b);
    const position cols = common(name, a.cols(), b.cols());
    const int an = a.in(g), bn = b.in(g);
    return {g, g.append({.op = op, .a = an, .b = bn, .cols = cols})};
  }
  static position common(const char* name, position a, position b) {
    if (a != b && a != 1 && b != 1)
      throw shape_error(sentence("autodiff: ", name, " of rows of ", a, " and of ", b, " columns"));
    return std::max(a, b);
  }

  graph* graph_ = nullptr;  // none: a number
  int node_ = -1;
  double number_ = 0;
};

// Rows of a memory slot that a row sees; the state of a carry slot.
struct seen_rows {
  graph* of;
  int slot;
  position cols;
};
struct carried_state {
  graph* of;
  int slot;
  position cols;
};

}  // namespace streambp::autodiff
