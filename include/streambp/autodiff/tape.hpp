// Where the rows of a graph stand, and the order of its backward: from the analysis to columns of
// the slots that a layer with a derived backward has.
#pragma once

#include <utility>

#include "analysis.hpp"
#include "packing.hpp"

namespace streambp::autodiff {

// Columns a token.
struct tape_columns {
  position saved = 0;    // from forward to backward of a chunk
  position kept = 0;     // what attention gave
  position scratch = 0;  // within one call
};

// Of a backward: node n is computed again; or its gradient goes to what it was computed from; or
// the gradient of its weight is taken, together with that of all products with the same weight.
enum class move : unsigned char { compute, pull, weigh };
struct backward_step {
  move what = move::compute;
  int node = -1;
};

class tape {
 public:
  static constexpr int most = graph::most;
  using columns = std::array<position, most>;

  // `keeps`: of forward and backward. Otherwise of remember and release, which share nothing.
  tape(const graph& of, bool keeps) : a(of, keeps) {
    none(forward_at), none(backward_at), none(adjoint_at), none(spare_at), none(kept_at);
    none(sum_at);
    place_forward();
    order_backward();
    place_backward();
  }

  analysis a;
  tape_columns width;
  // Columns [0, saved) lie in the saved slot, those behind them in the scratch slot; -1: nowhere.
  columns forward_at, backward_at, adjoint_at;
  columns spare_at;  // a gradient that is assigned first and then added
  columns kept_at;   // in the kept slot
  columns sum_at;    // of attention's softmax, while it runs
  std::array<backward_step, 2 * most> steps{};
  int step_count = 0;

  // Neither in the tape nor given by the caller.
  bool has_rows(int n) const {
    const operation op = a.g[n].op;
    return a.live[at(n)] && a.stored[at(n)] && a.direct[at(n)] < 0 && op != operation::input &&
           op != operation::output && op != operation::attend;
  }
  bool has_adjoint(int n) const {
    const operation op = a.g[n].op;
    return a.direct[at(n)] < 0 && op != operation::input && op != operation::output;
  }

 private:
  static constexpr std::size_t at(int n) { return std::size_t(n); }
  static void none(columns& c) { c.fill(-1); }

  analysis::flags pulled_{};

  void place_forward() {
    const graph& g = a.g;
    std::array<int, most> last{};
    for (int n = 0; n < g.size; ++n) {
      last[at(n)] = std::max(last[at(n)], n);
      if (a.live[at(n)] && a.stored[at(n)]) a.for_reads(n, [&](int b) { last[at(b)] = n; });
      if (a.saved[at(n)])
        forward_at[at(n)] = backward_at[at(n)] = width.saved, width.saved += g[n].cols;
      if (a.live[at(n)] && g[n].op == operation::attend)
        kept_at[at(n)] = width.kept, width.kept += g[n].cols + g[n].heads.heads;
    }
    column_packing forward(width.saved);
    for (int n = 0; n < g.size; ++n) {
      if (has_rows(n) && !a.saved[at(n)])
        forward_at[at(n)] = forward.at(forward.place(g[n].cols, n, last[at(n)], width.saved));
      if (kept_at[at(n)] >= 0)
        sum_at[at(n)] = forward.at(forward.place(g[n].heads.heads, n, n, width.saved));
    }
    width.scratch = forward.end() - width.saved;
  }

  void order_backward() {
    const graph& g = a.g;
    analysis::flags there{}, receives{};
    for (int n = 0; n < g.size; ++n) there[at(n)] = !has_rows(n) || a.saved[at(n)];
    const auto receive = [&](int b, bool) { receives[at(b)] = true; };
    for (int n = g.size; n-- > 0;) {
      const operation op = g[n].op;
      if (!a.live[at(n)] || !a.stored[at(n)] || !a.active[at(n)] || op == operation::input)
        continue;
      if (g[n].region > 0 && op != operation::recur) continue;
      if (has_adjoint(n) && !receives[at(n)]) continue;
      for_members(n, [&](int m) {
        a.for_pull_reads(m, [&](int b) { bring(b, there); });
        a.for_pull_targets(m, receive);
        pulled_[at(m)] = true;
      });
      steps[at(step_count++)] = {move::pull, n};
    }
    for (int n = g.size; n-- > 0;) {
      if (g[n].op == operation::parameter && receives[at(n)])
        steps[at(step_count++)] = {move::pull, n};
      if (weighed_later(n) && sharers(n, n) == 0) steps[at(step_count++)] = {move::weigh, n};
    }
  }
  void bring(int n, analysis::flags& there) {
    if (there[at(n)]) return;
    a.for_reads(n, [&](int b) { bring(b, there); });
    there[at(n)] = true;
    steps[at(step_count++)] = {move::compute, n};
  }

 public:
  // Two products with one weight: their shares are added grain by grain, whatever the chunks are.
  bool weighed_later(int n) const { return product(n) && sharers(n, a.g.size) > 1; }
  template <class F>
  void for_sharers(int n, const F& f) const {
    for (int m = a.g.size; m-- > 0;)
      if (product(m) && a.g[m].slot == a.g[n].slot) f(m);
  }

  // The nodes that are pulled with n: those of a recurrence, descending, or n alone.
  template <class F>
  void for_members(int n, const F& f) const {
    const int region = a.g[n].region;
    for (int m = n; m >= 0; --m) {
      if (m == n || (region > 0 && a.g[m].region == region && a.stored[at(m)])) f(m);
      if (region == 0) return;
    }
  }

 private:
  // A product that gets a gradient.
  bool product(int n) const { return a.g[n].op == operation::product && pulled_[at(n)]; }
  int sharers(int n, int below) const {
    int count = 0;
    for_sharers(n, [&](int m) { count += m < below; });
    return count;
  }

  struct life {
    int first = -1, last = -1, held = -1;
  };
  using lives = std::array<life, most>;

  void place_backward() {
    const graph& g = a.g;
    lives value{}, adjoint{};
    for (int i = 0; i < step_count; ++i) {
      const auto [what, n] = steps[at(i)];
      const auto reads = [&](int b) { value[at(b)].last = i; };
      const auto gives = [&](int b, bool) {
        if (adjoint[at(b)].first < 0) adjoint[at(b)].first = i;
        adjoint[at(b)].last = std::max(adjoint[at(b)].last, i);
      };
      if (what == move::compute) {
        value[at(n)].first = i;
        a.for_reads(n, reads);
        continue;
      }
      if (what == move::weigh) {
        for_sharers(n, [&](int m) { reads(a.base(g[m].a).node), adjoint[at(m)].last = i; });
        continue;
      }
      for_members(n, [&](int m) {
        a.for_pull_reads(m, reads);
        a.for_pull_targets(m, gives);
        if (g[n].region > 0) gives(m, false), reads(m);
      });
      adjoint[at(n)].last = i;
    }

    column_packing rows(width.saved);
    for (int n = 0; n < g.size; ++n)
      if (a.saved[at(n)])
        value[at(n)].held = rows.hold(forward_at[at(n)], g[n].cols, -1, value[at(n)].last);
    for (int i = 0; i < step_count; ++i) {
      const auto [what, n] = steps[at(i)];
      if (what == move::weigh) continue;
      if (what == move::compute) {
        value[at(n)].held = rows.place(g[n].cols, i, value[at(n)].last);
        backward_at[at(n)] = rows.at(value[at(n)].held);
        continue;
      }
      for (int b = 0; b < g.size; ++b)
        if (adjoint[at(b)].first == i && has_adjoint(b)) {
          adjoint[at(b)].held = -1;
          for (life* old : {&value[at(b)], &adjoint[at(n)]})
            if (adjoint[at(b)].held < 0 && old->held >= 0 && old->last == i && b != n &&
                may_take(n, b, old == &adjoint[at(n)]) && rows.cols(old->held) == g[b].cols) {
              rows.prolong(old->held, adjoint[at(b)].last);
              adjoint[at(b)].held = std::exchange(old->held, -1);
            }
          if (adjoint[at(b)].held < 0)
            adjoint[at(b)].held = rows.place(g[b].cols, i, adjoint[at(b)].last);
          adjoint_at[at(b)] = rows.at(adjoint[at(b)].held);
        }
      if (const position cols = spare_cols(n, i, adjoint); cols > 0)
        spare_at[at(n)] = rows.at(rows.place(cols, i, i));
    }
    width.scratch = std::max(width.scratch, rows.end() - width.saved);
  }

  // Whether pulling n may put the gradient of b where rows of as many columns are read for the last
  // time: b's own, or n's gradient.
  bool may_take(int n, int b, bool gradient) const {
    const operation op = a.g[n].op;
    if (a.g[n].region > 0 || op == operation::attend || op == operation::parameter) return false;
    if (op == operation::scan) return !gradient && a.g[n].a != a.g[n].b && whole_operand(n, b);
    if (op == operation::product) return !gradient && whole_operand(n, b);
    int leaves = 0;
    for (const expression_root root : a.expressions(n)) {
      if (root.node < 0) continue;
      const term_list list = a.terms(root);
      for (int t = 0; t < list.size; ++t)
        leaves += !a.interior(list, t, root) && a.base(list.node[at(t)]).node == b;
    }
    bool alike = false;
    a.for_pull_targets(n, [&](int target, bool same) { alike = alike || (target == b && same); });
    return leaves == 1 && alike;
  }
  bool whole_operand(int n, int b) const {
    const auto o = a.operands(n);
    return o[0] == b || o[1] == b;
  }

  // Attention and scans assign what others may have added to, or may be only part of.
  position spare_cols(int n, int step, const lives& adjoint) const {
    const operation op = a.g[n].op;
    if (op != operation::attend && op != operation::scan) return 0;
    position cols = 0;
    bool needed = false;
    for (const int o : a.operands(n)) {
      if (o < 0) continue;
      cols += a.g[o].cols;
      const base_rows b = a.base(o);
      needed = needed || b.node != o || !has_adjoint(o) || adjoint[at(o)].first != step ||
               !a.active[at(o)];
    }
    needed = needed || a.g[n].a == a.g[n].b;
    return needed ? cols : 0;
  }
};

}  // namespace streambp::autodiff
