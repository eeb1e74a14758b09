// The traits of a layer under watch: each of its calls is made inside a watched_call.
#pragma once

#include "../engine/cell.hpp"
#include "watched_call.hpp"

namespace streambp {

namespace laws {

// Rows that hold more than they should for the time of a call that adds to them.
template <class Device, class Rows>
class lifted_rows {
 public:
  lifted_rows(Device& on, Rows rows, double by) : on_(on), rows_(rows), by_(by) { add(by_); }
  ~lifted_rows() { add(-by_); }
  lifted_rows(const lifted_rows&) = delete;
  lifted_rows& operator=(const lifted_rows&) = delete;

 private:
  void add(double amount) {
    if constexpr (requires { shift(on_, amount, rows_); })  // rows are lifted, tokens are not
      if (amount != 0 && rows_.data != nullptr) shift(on_, amount, rows_);
  }

  Device& on_;
  Rows rows_;
  double by_;
};

// For the time of a call the watch's tasks run the layer's loops, and look at what the call may
// write: `rows` and the layer's slots.
template <class L, class At, class Rows>
class watched_loops {
 public:
  watched_loops(const watched<L>& w, At& at, Rows rows) : w_(w), at_(at) {
    if (w.by->tasks == nullptr) return;
    if constexpr (requires { w.by->tasks->look_at(rows); }) w.by->tasks->look_at(rows);
    constexpr std::size_t slots = std::tuple_size_v<typename At::slots>;
    for (auto of :
         {&slot_cell<typename At::scalar>::value, &slot_cell<typename At::scalar>::gradient,
          &slot_cell<typename At::scalar>::kept})
      for (std::size_t k = 0; k < slots; ++k) w.by->tasks->look_at(at.cells[k].*of);
    if constexpr (requires { at.on.run_by(w.by->tasks); }) at.on.run_by(w.by->tasks);
  }
  ~watched_loops() {
    if (w_.by->tasks == nullptr) return;
    if constexpr (requires { at_.on.run_by(nullptr); }) at_.on.run_by(nullptr);
    w_.by->tasks->look_away();
  }
  watched_loops(const watched_loops&) = delete;
  watched_loops& operator=(const watched_loops&) = delete;

 private:
  const watched<L>& w_;
  At& at_;
};

}  // namespace laws

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
    if (!w.by->on || at.on.counts_only()) {
      const laws::watched_loops<L, At, X> loops(w, at, x);
      return traits::remember(w.layer, at, x);
    }
    laws::watched_call<L, At> call(w, at, "remember");
    laws::guarded_rows given(x, w.by->poison);
    call.hide_memory_but_own();
    traits::remember(w.layer, at, given.rows());
    w.by->expect(given.untouched(), traits::name(), "remember", "to x, or outside it");
    call.finish();
  }

  template <class At, class X, class Y>
  requires requires(const L& layer, At& at, X x, Y y) { traits::forward(layer, at, x, y); }
  static void forward(const watched& w, At& at, X x, Y y) {
    if (!w.by->on || at.on.counts_only()) {
      const laws::watched_loops<L, At, Y> loops(w, at, y);
      return traits::forward(w.layer, at, x, y);
    }
    laws::watched_call<L, At> call(w, at, "forward");
    laws::guarded_rows given(x, w.by->poison), result(y, w.by->poison, true);
    call.forget_saved();
    call.hide_unseen_memory();
    traits::forward(w.layer, at, given.rows(), result.rows());
    w.by->expect(given.untouched(), traits::name(), "forward", "to x, or outside it");
    w.by->expect(result.give_back(y), traits::name(), "forward", "outside y");
    call.finish();
  }

  template <class At, class X, class Y, class D>
  requires requires(const L& layer, At& at, X x, Y y, D dx) {
    traits::backward(layer, at, x, y, y, dx);
  }
  static void backward(const watched& w, At& at, X x, Y y, Y dy, D dx) {
    if (at.on.counts_only()) return traits::backward(w.layer, at, x, y, dy, dx);
    if (!w.by->on) {
      const laws::lifted_rows lifted(at.on, dx, w.by->lift);
      const laws::watched_loops<L, At, D> loops(w, at, dx);
      return traits::backward(w.layer, at, x, y, dy, dx);
    }
    laws::watched_call<L, At> call(w, at, "backward");
    laws::guarded_rows given(x, w.by->poison, !traits::backward_reads_input);
    laws::guarded_rows result(y, w.by->poison, !traits::backward_reads_output);
    laws::guarded_rows d_result(dy, w.by->poison), d_given(dx, w.by->poison);
    call.hide_unseen_memory();
    call.hide_memory_gradients(false);
    traits::backward(w.layer, at, given.rows(), result.rows(), d_result.rows(), d_given.rows());
    w.by->expect(given.untouched() && result.untouched() && d_result.untouched(), traits::name(),
                 "backward", "to x, y or dy, or outside them");
    w.by->expect(d_given.give_back(dx), traits::name(), "backward", "outside dx");
    call.finish();
  }

  template <class At, class X, class D>
  requires requires(const L& layer, At& at, X x, D dx) { traits::release(layer, at, x, dx); }
  static void release(const watched& w, At& at, X x, D dx) {
    if (at.on.counts_only()) return traits::release(w.layer, at, x, dx);
    if (!w.by->on) {
      const laws::lifted_rows lifted(at.on, dx, w.by->lift);
      const laws::watched_loops<L, At, D> loops(w, at, dx);
      return traits::release(w.layer, at, x, dx);
    }
    laws::watched_call<L, At> call(w, at, "release");
    laws::guarded_rows given(x, w.by->poison), d_given(dx, w.by->poison);
    call.hide_memory_gradients(true);
    traits::release(w.layer, at, given.rows(), d_given.rows());
    w.by->expect(given.untouched(), traits::name(), "release", "to x, or outside it");
    w.by->expect(d_given.give_back(dx), traits::name(), "release", "outside dx");
    call.finish();
  }

  // On rows of the other stream: not watched.
  template <class At, class X>
  requires requires(const L& layer, At& at, X c) { traits::remember_context(layer, at, c); }
  static void remember_context(const watched& w, At& at, X c) {
    traits::remember_context(w.layer, at, c);
  }
  template <class At, class X, class D>
  requires requires(const L& layer, At& at, X c, D dc) {
    traits::release_context(layer, at, c, dc);
  }
  static void release_context(const watched& w, At& at, X c, D dc) {
    traits::release_context(w.layer, at, c, dc);
  }

  // Once a step, on tallies alone: not watched.
  template <class At>
  requires requires(const L& layer, At& at) { traits::side_loss(layer, at); }
  static double side_loss(const watched& w, At& at) { return traits::side_loss(w.layer, at); }
};

}  // namespace streambp
