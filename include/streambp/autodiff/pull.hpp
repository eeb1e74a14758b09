// Backward along a tape: each node's gradient to what the node was computed from.
#pragma once

#include "compute.hpp"

namespace streambp::autodiff {

template <bool SeesAll, class Rows>
class pull {
 public:
  using scalar = typename Rows::scalar;
  using bound = std::array<typename Rows::terms_type, 2>;

  explicit pull(Rows& rows) : r(rows), forward_(rows) {}

  void backward() {
    for (int i = 0; i < r.t.step_count; ++i) {
      const auto [what, n] = r.t.steps[std::size_t(i)];
      r.forget();
      if (what == move::compute)
        forward_.node_at(n);
      else if (what == move::weigh)
        shared_weight(n);
      else if (r[n].op == operation::recur)
        recur(n);
      else
        rows_of(n, bind(n), r.all_rows());
    }
  }

 private:
  bound bind(int n) {
    bound both;
    if (r[n].op == operation::output && r.t.a.direct[std::size_t(r[n].a)] >= 0) return both;
    std::size_t i = 0;
    for (const expression_root root : r.t.a.expressions(n)) {
      if (root.node >= 0) both[i] = r.bind(root, true, r.t.a.pull_reads_all(n));
      ++i;
    }
    return both;
  }

  void rows_of(int n, const bound& terms, row_range rows) {
    const node& it = r[n];
    auto& on = r.at.on;
    if (it.op == operation::before) return;
    const view<const scalar> dy = r.slope(n);
    const position cols = it.a < 0 ? it.cols : r[it.a].cols;
    switch (it.op) {
      case operation::parameter:
        if (r.trains(it.slot))
          add_column_sums(on, dy, r.slots.gradient[std::size_t(it.slot)], r.at.grains());
        return;
      case operation::product:
        return product(n, dy, rows);
      case operation::row_sum:
        return differentiate(on, terms[0], cols, dy, rows);
      case operation::row_max:
        return differentiate_max(on, terms[0], cols, r.value(n), dy, rows);
      case operation::row_rms:
        return differentiate_rms(on, terms[0], cols, r.value(n), dy, rows);
      case operation::concatenate:
        differentiate(on, terms[0], cols, dy.middle_cols(0, cols), rows);
        return differentiate(on, terms[1], it.cols - cols, dy.middle_cols(cols, it.cols - cols),
                             rows);
      case operation::rotate:
        rotate(on, forward_.turn_of(it), it.frequencies, r.at.pieces(), r.gradient(n), true);
        return differentiate(on, terms[0], cols, dy, rows);
      case operation::attend:
        return attend(n, dy);
      case operation::scan:
        return scan(n, dy);
      case operation::output:
        if (terms[0].empty()) return;
        [[fallthrough]];
      default:
        return differentiate(on, terms[0], it.cols, dy, rows);
    }
  }

  // dw += dyᵀ x, dx += dy w. Within a recurrence dw waits until all rows are there.
  void product(int n, view<const scalar> dy, row_range rows) {
    const node& it = r[n];
    if (it.region == 0) weight_gradient(n);
    if (!r.t.a.active[std::size_t(it.a)]) return;
    const write how = r.begin(it.a) ? write::assign : write::add;
    project_back(r.at.on, dy.rows_in(rows), r.slots.value[std::size_t(it.slot)],
                 r.gradient(it.a).rows_in(rows), how);
  }
  void weight_gradient(int n) {
    if (!r.t.weighed_later(n)) weight_gradient(n, r.all_rows(), r.at.grains());
  }
  void shared_weight(int n) {
    const auto grains = r.at.grains();
    for (std::size_t i = grains.size() - 1; i-- > 0;)
      r.t.for_sharers(n, [&](int m) {
        weight_gradient(m, {grains[i] - grains[0], grains[i + 1] - grains[0]},
                        grains.subspan(i, 2));
      });
  }
  void weight_gradient(int n, row_range rows, std::span<const position> grains) {
    const node& it = r[n];
    if (r.trains(it.slot))
      add_weight_gradient(r.at.on, r.slope(n).rows_in(rows), r.value(it.a).rows_in(rows),
                          r.slots.gradient[std::size_t(it.slot)], grains);
  }

  void attend(int n, view<const scalar> d_o) {
    const node& it = r[n];
    const view<scalar> spare = r.spare(n, r[it.a].cols);
    const view<scalar> dq = spare.rows > 0 ? spare : r.gradient(it.a);
    const attention_shape shape =
        shape_of(it.heads, r[it.a].cols, it.cols, SeesAll, r.at.chunk.tile);
    r.at.walk_slots_back(shape, r.at.pieces(), it.slot, it.other_slot,
                         [&](const auto& memory, auto dk, auto dv) {
                           attention_backward(r.at.on, shape, r.at.pieces(), r.value(it.a), memory,
                                              nullptr, r.value(n), r.log_sum_exp(n), d_o, dq, dk,
                                              dv, nullptr, r.at[tiles_tag{}]);
                         });
    hand_on(it.a, spare);
  }

  void scan(int n, view<const scalar> dh) {
    const node& it = r[n];
    const view<scalar> spare = r.spare(n, 2 * it.cols);
    const bool apart = spare.rows > 0;
    const view<scalar> df = apart ? spare.middle_cols(0, it.cols) : r.gradient(it.a);
    const view<scalar> dc = apart ? spare.middle_cols(it.cols, it.cols) : r.gradient(it.b);
    scan_backward(r.at.on, r.at.pieces(), r.slots.states[std::size_t(it.slot)], r.value(it.a),
                  r.value(it.b), r.value(n), dh, df, dc);
    hand_on(it.a, apart ? df : view<scalar>{});
    hand_on(it.b, apart ? dc : view<scalar>{});
  }

  // A gradient that was assigned to spare rows, or in place.
  void hand_on(int to, view<scalar> spare) {
    if (!r.t.a.active[std::size_t(to)]) return;
    const bool assigns = r.begin(to);
    if (spare.rows == 0) return;
    if (assigns)
      copy(r.at.on, spare, r.gradient(to));
    else
      add(r.at.on, spare, r.gradient(to));
  }

  // Last token first: what h[t] is to row t + 1 comes to it before its own step is taken back.
  void recur(int n) {
    const analysis& a = r.t.a;
    r.t.for_members(n, [&](int m) {
      if (!r.begun[std::size_t(m)]) zero(r.at.on, r.gradient(m));
      r.begun[std::size_t(m)] = true;
    });
    std::array<bound, graph::most> terms;
    r.t.for_members(n, [&](int m) {
      a.for_pull_targets(m, [&](int b, bool) {
        if (r.begin(b)) zero(r.at.on, r.gradient(b));
      });
      if (a.active[std::size_t(m)]) terms[std::size_t(m)] = bind(m);
    });
    const auto step = [&](row_range rows) {
      r.t.for_members(n, [&](int m) {
        if (a.active[std::size_t(m)]) rows_of(m, terms[std::size_t(m)], rows);
      });
    };
    if (r.at.on.counts_only())
      step(r.all_rows());
    else
      tokens(n, step);
    r.t.for_members(n, [&](int m) {
      if (r[m].op == operation::product) weight_gradient(m);
    });
  }
  template <class Step>
  void tokens(int n, const Step& step) {
    const auto states = r.slots.states[std::size_t(r[n].slot)];
    const view<scalar> d_before = r.gradient(r[n].b), d_after = r.gradient(n);
    const auto as_row = [&](auto* p) {
      return view<std::remove_pointer_t<decltype(p)>>{p, 1, d_after.cols};
    };
    r.at.pieces().descending([&](const piece& p) {
      const scalar* passed = states.d_after(p);
      for (position row = p.last(); row-- > p.row;) {
        if (passed) add(r.at.on, as_row(passed), d_after.middle_rows(row, 1));
        step({row, row + 1});
        passed = d_before.row(row);
      }
      scalar* to = states.d_before(p);
      if (to) add(r.at.on, as_row(passed), as_row(to));
    });
  }

  Rows& r;
  compute<SeesAll, Rows> forward_;
};

}  // namespace streambp::autodiff
