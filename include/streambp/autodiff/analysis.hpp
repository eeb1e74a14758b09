// Which of a graph's rows backward reads, and which of these the forward saves: what a backward
// written by hand would save.
#pragma once

#include "expressions.hpp"

namespace streambp::autodiff {

class analysis : public expressions_in {
 public:
  // `keeps`: what backward reads may be saved by the forward; otherwise backward computes it again.
  analysis(const graph& of, bool keeps) : expressions_in(of) { find_valued(keeps); }

  flags valued{};  // backward reads its rows
  flags saved{};   // they are kept from the forward to the backward of a chunk
  std::array<int, graph::most> direct{};  // output whose rows it is written to at once; -1: none

 private:
  // A node's rows are read by nodes after it: of its gradient, or to be computed again themselves.
  void find_valued(bool keeps) {
    direct.fill(-1);
    for (int n = g.size; n-- > 0;) {
      const operation op = g[n].op;
      if (!live[at(n)] || !stored[at(n)]) continue;
      const bool cheap = (entry_wise(op) && g[n].cols > 1) || op == operation::concatenate;
      const auto mark = [&](int b) { valued[at(b)] = true; };
      if (keeps && op != operation::input && op != operation::output && op != operation::attend)
        saved[at(n)] = (valued[at(n)] && !cheap) || g[n].region > 0;
      if (op == operation::scan && keeps) saved[at(n)] = true;
      if (active[at(n)]) for_pull_reads(n, mark);
      if (valued[at(n)] && !saved[at(n)] && op != operation::attend) for_reads(n, mark);
    }
    for (int n = 0; n < g.size; ++n) {
      if (g[n].op != operation::output) continue;
      const int a = g[n].a;
      if ((g[a].op == operation::product || g[a].op == operation::concatenate) && !valued[at(a)] &&
          g[a].region == 0 && consumers(a) == 1)
        direct[at(a)] = n;
    }
  }
  int consumers(int of) const {
    int count = 0;
    for (int n = 0; n < g.size; ++n)
      if (live[at(n)]) for_operands(n, [&](int o) { count += o == of; });
    return count;
  }
};

}  // namespace streambp::autodiff
