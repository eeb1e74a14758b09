// Which rows of a graph exist in memory. Entry-wise operations form expressions, computed entry by
// entry from the rows that exist to the rows that somebody needs; what is in between never exists.
#pragma once

#include "../expression/graph.hpp"

namespace streambp::autodiff {

// A node to be computed entry by entry: from its operands, or, if it exists already, read.
struct expression_root {
  int node = -1;
  bool expands = false;
};

// The nodes of an expression, ascending, root last.
struct term_list {
  static constexpr int most = 64;
  std::array<int, most> node{};
  int size = 0;
};

struct base_rows {
  int node = -1;
  position first = 0;  // column
};

class expressions_in {
 public:
  using flags = std::array<bool, graph::most>;

  explicit expressions_in(const graph& of) : g(of) {
    find_live();
    find_stored();
    find_active();
  }

  const graph& g;
  flags live{};    // something comes of it
  flags stored{};  // its rows exist
  flags active{};  // its gradient is wanted

  // Rows that a product or a slice points into.
  base_rows base(int n) const {
    position first = 0;
    for (; g[n].op == operation::slice; n = g[n].a) first += g[n].first;
    return {n, first};
  }
  bool leaf(int n) const { return !entry_wise(g[n].op) || stored[at(n)]; }

  // What a node that exists is computed from: up to two expressions.
  std::array<expression_root, 2> expressions(int n) const {
    const node& it = g[n];
    switch (it.op) {
      case operation::output:
      case operation::row_sum:
      case operation::row_max:
      case operation::row_rms:
      case operation::rotate:
      case operation::recur:
        return {expression_root{it.a}};
      case operation::concatenate:
        return {expression_root{it.a}, expression_root{it.b}};
      default:
        if (entry_wise(it.op)) return {expression_root{n, true}};
        return {};
    }
  }
  // And rows that it reads as they are.
  std::array<int, 2> operands(int n) const {
    const node& it = g[n];
    if (it.op == operation::product || it.op == operation::attend) return {it.a, -1};
    if (it.op == operation::scan) return {it.a, it.b};
    return {-1, -1};
  }

  // Throws shape_error when an expression is too long.
  term_list terms(expression_root root) const {
    flags in{};
    in[at(root.node)] = true;
    term_list list;
    for (int n = root.node; n >= 0; --n) {
      if (!in[at(n)]) continue;
      if (++list.size > term_list::most)
        throw shape_error(sentence("autodiff: more than ", term_list::most,
                                   " entry-wise operations in a row; make it two layers, or write "
                                   "the backward by hand"));
      if (n == root.node ? root.expands || !leaf(n) : !leaf(n))
        for_operands(n, [&](int o) { in[at(o)] = true; });
    }
    int last = list.size;
    for (int n = root.node; n >= 0; --n)
      if (in[at(n)]) list.node[at(--last)] = n;
    return list;
  }
  bool interior(const term_list& list, int t, expression_root root) const {
    const int n = list.node[at(t)];
    return t + 1 == list.size ? root.expands || !leaf(n) : !leaf(n);
  }

  // By term, when the expression's gradient is taken: whether its value is read, and whether a
  // gradient comes to it.
  struct term_uses {
    std::array<bool, term_list::most> read{}, reached{};
  };
  term_uses uses(const term_list& list, expression_root root) const {
    flags needed{}, reached{};
    term_uses of;
    reached[at(root.node)] = active[at(root.node)];
    for (int t = list.size; t-- > 0;) {
      const int n = list.node[at(t)];
      of.read[at(t)] = needed[at(n)];
      of.reached[at(t)] = reached[at(n)];
      if (!interior(list, t, root)) continue;
      if (needed[at(n)]) for_operands(n, [&](int o) { needed[at(o)] = true; });
      if (!reached[at(n)]) continue;
      const node& it = g[n];
      const auto reach = [&](int o) { reached[at(o)] = reached[at(o)] || active[at(o)]; };
      if (it.op == operation::select)
        reach(it.b), reach(it.c);  // what decides gets no gradient
      else
        for_operands(n, reach);
      const bool a = it.a >= 0 && active[at(it.a)], b = it.b >= 0 && active[at(it.b)];
      const auto need = [&](int o) { needed[at(o)] = true; };
      if (it.op == operation::unary && it.function != unary::negate) need(it.a);
      if (it.op == operation::power) need(it.a);
      if ((it.op == operation::multiply && a) || (it.op == operation::divide && (a || b)))
        need(it.b);
      if ((it.op == operation::multiply || it.op == operation::divide) && b) need(it.a);
      if (it.op == operation::max || it.op == operation::min) need(it.a), need(it.b);
      if (it.op == operation::select) need(it.a);
    }
    return of;
  }

  // Calls f(base) for rows that computing n reads.
  template <class F>
  void for_reads(int n, const F& f) const {
    for (const expression_root root : expressions(n)) {
      if (root.node < 0) continue;
      const term_list list = terms(root);
      for (int t = 0; t < list.size; ++t)
        if (!interior(list, t, root)) f(base(list.node[at(t)]).node);
    }
    for (const int o : operands(n))
      if (o >= 0) f(base(o).node);
  }
  // Calls f(base) for rows that taking n's gradient to its operands reads.
  template <class F>
  void for_pull_reads(int n, const F& f) const {
    for (const expression_root root : expressions(n)) {
      if (root.node < 0) continue;
      const term_list list = terms(root);
      const term_uses of = uses(list, root);
      for (int t = 0; t < list.size; ++t)
        if (!interior(list, t, root) && (of.read[at(t)] || pull_reads_all(n)))
          f(base(list.node[at(t)]).node);
    }
    for (const int o : operands(n))
      if (o >= 0) f(base(o).node);
    const operation op = g[n].op;
    if (pull_reads_all(n) || op == operation::attend || op == operation::scan) f(n);
  }
  // Taking n's gradient back reads n, and all that n was computed from.
  bool pull_reads_all(int n) const {
    return g[n].op == operation::row_max || g[n].op == operation::row_rms;
  }
  // Calls f(base, alike) for rows whose gradient n adds to; alike: entry by entry to all of them.
  template <class F>
  void for_pull_targets(int n, const F& f) const {
    for (const expression_root root : expressions(n)) {
      if (root.node < 0) continue;
      const term_list list = terms(root);
      const term_uses of = uses(list, root);
      const position cols = g[root.node].cols;
      for (int t = 0; t < list.size; ++t) {
        const int leaf = list.node[at(t)];
        if (interior(list, t, root) || !of.reached[at(t)]) continue;
        f(base(leaf).node, g[leaf].op != operation::slice && g[leaf].cols == cols &&
                               g[n].op != operation::concatenate);
      }
    }
    for (const int o : operands(n))
      if (o >= 0 && active[at(o)]) f(base(o).node, g[o].op != operation::slice);
  }

 protected:
  static constexpr std::size_t at(int n) { return std::size_t(n); }
  template <class F>
  void for_operands(int n, const F& f) const {
    for (const int o : {g[n].a, g[n].b, g[n].c})
      if (o >= 0) f(o);
  }

 private:
  void find_live() {
    for (int n = g.size; n-- > 0;) {
      if (g[n].op == operation::output) live[at(n)] = true;
      if (live[at(n)]) for_operands(n, [&](int o) { live[at(o)] = true; });
    }
  }

  void find_stored() {
    for (int n = 0; n < g.size; ++n) {
      const operation op = g[n].op;
      stored[at(n)] = live[at(n)] && !entry_wise(op) && op != operation::parameter &&
                      op != operation::constant && op != operation::slice;
    }
    const auto store = [&](int o) {
      if (o >= 0 && entry_wise(g[o].op)) stored[at(o)] = true;
    };
    for (int n = 0; n < g.size; ++n) {
      if (!live[at(n)]) continue;
      for (const int o : operands(n)) store(o);
      if (g[n].op == operation::slice) store(g[n].a);
      if (entry_wise(g[n].op) && g[n].cols > 1)
        for_operands(n, [&](int o) {
          if (g[o].cols == 1) store(o);
        });
    }
  }

  void find_active() {
    for (int n = 0; n < g.size; ++n) {
      const operation op = g[n].op;
      bool of_operand = false;
      for_operands(n, [&](int o) { of_operand = of_operand || active[at(o)]; });
      active[at(n)] = op == operation::input || op == operation::parameter ||
                      op == operation::before || op == operation::product ||
                      op == operation::attend || op == operation::scan || op == operation::recur ||
                      (of_operand && op != operation::detach);
      if (op == operation::select) active[at(n)] = active[at(g[n].b)] || active[at(g[n].c)];
    }
  }
};

}  // namespace streambp::autodiff
