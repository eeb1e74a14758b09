// Forward along a tape: each node's rows from those of the nodes before it.
#pragma once

#include "../primitives/rotary_shape.hpp"
#include "../primitives/write.hpp"
#include "tape_rows.hpp"

namespace streambp::autodiff {

template <bool SeesAll, class Rows>
class compute {
 public:
  using scalar = typename Rows::scalar;
  using terms_type = typename Rows::terms_type;
  using bound = std::array<terms_type, 2>;

  explicit compute(Rows& rows) : r(rows) {}

  // Everything that backward or a later chunk needs, and the output if it is wanted.
  void forward(bool wants_output) {
    const analysis& a = r.t.a;
    analysis::flags needed{};
    for (int n = r.g().size; n-- > 0;) {
      const operation op = r[n].op;
      const auto i = std::size_t(n);
      if (!a.live[i] || !a.stored[i]) continue;
      if (a.saved[i] || op == operation::attend || op == operation::scan ||
          op == operation::recur || (op == operation::output && wants_output))
        needed[i] = true;
      if (needed[i]) a.for_reads(n, [&](int b) { needed[std::size_t(b)] = true; });
    }
    for (int n = 0; n < r.g().size; ++n)
      if (needed[std::size_t(n)] && a.stored[std::size_t(n)]) node_at(n);
  }

  // One node, or with a recurrence all of its.
  void node_at(int n) {
    if (r[n].region > 0 && r[n].op != operation::recur) return;
    r.forget();
    if (r[n].op == operation::recur)
      recur(n);
    else
      rows_of(n, bind(n), r.all_rows());
  }

 private:
  bound bind(int n) {
    bound both;
    std::size_t i = 0;
    for (const expression_root root : r.t.a.expressions(n)) {
      if (root.node >= 0) both[i] = r.bind(root, false, false);
      ++i;
    }
    return both;
  }

  void rows_of(int n, const bound& terms, row_range rows) {
    const node& it = r[n];
    auto& on = r.at.on;
    if (it.op == operation::input || it.op == operation::before) return;
    const view<scalar> y = r.result(n);
    switch (it.op) {
      case operation::product:
        return project(on, r.value(it.a).rows_in(rows), r.slots.value[std::size_t(it.slot)],
                       y.rows_in(rows));
      case operation::row_sum:
        return evaluate_sum(on, terms[0], r[it.a].cols, y, rows);
      case operation::row_max:
        return evaluate_max(on, terms[0], r[it.a].cols, y, rows);
      case operation::row_rms:
        return evaluate_rms(on, terms[0], r[it.a].cols, it.constant, y, rows);
      case operation::concatenate:
        evaluate(on, terms[0], y.middle_cols(0, r[it.a].cols), rows);
        return evaluate(on, terms[1], y.middle_cols(r[it.a].cols, r[it.b].cols), rows);
      case operation::rotate:
        evaluate(on, terms[0], y, rows);
        return rotate(on, turn_of(it), it.frequencies, r.at.pieces(), y, false);
      case operation::output:
        if (r.t.a.direct[std::size_t(it.a)] < 0) evaluate(on, terms[0], y, rows);
        return;
      case operation::attend:
        if (!r.at.restored) attend(n, y);
        return;
      case operation::scan:
        return scan_forward(on, r.at.pieces(), r.slots.states[std::size_t(it.slot)], r.value(it.a),
                            r.value(it.b), y);
      default:
        return evaluate(on, terms[0], y, rows);
    }
  }

  void attend(int n, view<scalar> o) {
    const node& it = r[n];
    const attention_shape shape =
        shape_of(it.heads, r[it.a].cols, it.cols, SeesAll, r.at.chunk.tile);
    r.at.walk_slots(shape, r.at.pieces(), it.slot, it.other_slot, [&](const auto& memory) {
      attention_forward(r.at.on, shape, r.at.pieces(), r.value(it.a), memory, nullptr, o,
                        r.log_sum_exp(n), r.running_sum(n), r.at[tiles_tag{}]);
    });
  }

  // h[t] from h[t - 1], token by token, segment by segment.
  void recur(int n) {
    std::array<bound, graph::most> terms;
    r.t.for_members(n, [&](int m) { terms[std::size_t(m)] = bind(m); });
    const auto step = [&](row_range rows) {
      for (int m = r[n].b; m <= n; ++m)
        if (r[m].region == r[n].region && r.t.a.stored[std::size_t(m)])
          rows_of(m, terms[std::size_t(m)], rows);
    };
    if (r.at.on.counts_only()) return step(r.all_rows());

    const auto states = r.slots.states[std::size_t(r[n].slot)];
    const view<scalar> before = r.result(r[n].b), after = r.result(n);
    const auto as_row = [&](auto* p) {
      return view<std::remove_pointer_t<decltype(p)>>{p, 1, after.cols};
    };
    for (const piece p : r.at.pieces()) {
      const scalar* from = states.before(p);
      for (position row = p.row; row < p.last(); ++row) {
        if (from)
          copy(r.at.on, as_row(from), before.middle_rows(row, 1));
        else
          zero(r.at.on, before.middle_rows(row, 1));
        step({row, row + 1});
        from = after.row(row);
      }
      for (scalar* to : {states.kept(p), states.handed_on(p)})
        if (to) copy(r.at.on, as_row(from), as_row(to));
    }
  }

 public:
  static rotary_shape turn_of(const node& it) {
    const position width = 2 * position(it.frequencies.size());
    return {it.heads.heads, width, width, 0};
  }

  Rows& r;
};

}  // namespace streambp::autodiff
