// A tape at one chunk: its rows, and expressions bound to them.
#pragma once

#include "../expression/expression.hpp"
#include "derived_slots.hpp"
#include "slot_rows.hpp"

namespace streambp::autodiff {

// At: what the engine gives a layer. Slots: the layer's own.
template <class At, class Slots>
class tape_rows {
 public:
  using scalar = typename At::scalar;
  using rows_type = view<scalar>;
  using given_type = view<const scalar>;
  using terms_type = std::span<const expression_term<scalar>>;

  // y, dy: of forward; other outputs are the chunk's own rows of memories.
  tape_rows(const tape& t, At& at, given_type x, rows_type y, rows_type dx, given_type dy,
            bool backward)
      : t(t),
        at(at),
        slots(at, t.a.g, backward),
        x_(x),
        dy_(dy),
        y_(y),
        dx_(dx),
        backward_(backward) {
    saved_ = at[tape_tag{}];
    kept_ = at[attended_tag{}];
    working_ = at[working_tag{}];
    begun.fill(false);
  }

  const tape& t;
  At& at;
  slot_rows<scalar, Slots> slots;
  std::array<bool, graph::most> begun;  // gradients that something has been added to

  const graph& g() const { return t.a.g; }
  const node& operator[](int n) const { return t.a.g[n]; }
  row_range all_rows() const { return {0, at.rows()}; }

  given_type value(int n) const {
    const base_rows b = t.a.base(n);
    const node& it = g()[b.node];
    if (it.op == operation::input || it.op == operation::parameter) {
      const given_type all = it.op == operation::input ? x_ : slots.value[std::size_t(it.slot)];
      return all.middle_cols(b.first, g()[n].cols);
    }
    return result(n);
  }
  // Of what the tape computes: all but inputs and parameters.
  rows_type result(int n) const {
    const node& it = g()[n];
    const auto i = std::size_t(n);
    switch (it.op) {
      case operation::output:
        return it.slot < 0 ? y_ : slots.own[std::size_t(it.slot)];
      case operation::attend:
        return kept_.middle_cols(t.kept_at[i], it.cols);
      case operation::slice: {
        const base_rows b = t.a.base(n);
        return result(b.node).middle_cols(b.first, it.cols);
      }
      default:
        if (t.a.direct[i] >= 0) return result(t.a.direct[i]);
        return columns(backward_ ? t.backward_at[i] : t.forward_at[i], it.cols);
    }
  }
  // Of attention: (rows, heads).
  rows_type log_sum_exp(int n) const {
    return kept_.middle_cols(t.kept_at[std::size_t(n)] + g()[n].cols, g()[n].heads.heads);
  }
  // Of attention, between blocks of memory rows of the forward: (rows, heads).
  rows_type running_sum(int n) const {
    return columns(t.sum_at[std::size_t(n)], g()[n].heads.heads);
  }
  // To be read.
  given_type slope(int n) const {
    const base_rows b = t.a.base(n);
    const int direct = t.a.direct[std::size_t(b.node)];
    const node& it = g()[direct >= 0 ? direct : b.node];
    if (it.op == operation::output && it.slot < 0) return dy_.middle_cols(b.first, g()[n].cols);
    return gradient(n);
  }
  // To be added to: of all but y.
  rows_type gradient(int n) const {
    const node& it = g()[n];
    const auto i = std::size_t(n);
    if (it.op == operation::input) return dx_;
    if (it.op == operation::output) return slots.d_own[std::size_t(it.slot)];
    if (it.op == operation::slice) {
      const base_rows b = t.a.base(n);
      return gradient(b.node).middle_cols(b.first, it.cols);
    }
    if (t.a.direct[i] >= 0) return gradient(t.a.direct[i]);
    return columns(t.adjoint_at[i], it.cols);
  }
  // No rows where the gradient itself can be assigned.
  rows_type spare(int n, position cols) const {
    const position at_column = t.spare_at[std::size_t(n)];
    return at_column < 0 ? rows_type{} : columns(at_column, cols);
  }
  bool trains(int slot) const { return slots.gradient[std::size_t(slot)].rows > 0; }
  bool trained_leaf(int n) const {
    return g()[n].op != operation::parameter || trains(g()[n].slot);
  }

  // Whether what is added to the gradient of `n` may be assigned: it is the first, and to all
  // columns.
  bool begin(int n, bool sole = true) {
    const base_rows b = t.a.base(n);
    if (g()[b.node].op == operation::input || begun[std::size_t(b.node)]) return false;
    begun[std::size_t(b.node)] = true;
    if (sole && b.node == n) return true;
    zero(at.on, gradient(b.node));
    return false;
  }

  // For as long as no more than `pool` terms have been bound since forget().
  terms_type bind(expression_root root, bool pulls, bool reads_all) {
    const analysis& a = t.a;
    const term_list list = a.terms(root);
    if (used_ + list.size > pool)
      throw shape_error(sentence("at.recur: the step has more than ", pool,
                                 " entry-wise terms; what does not depend on the row before is "
                                 "computed outside of it"));
    expression_term<scalar>* const terms = terms_.data() + used_;
    used_ += list.size;
    const analysis::term_uses uses = a.uses(list, root);
    std::array<int, graph::most> place{};
    for (int i = 0; i < list.size; ++i) {
      const int n = list.node[std::size_t(i)];
      place[std::size_t(n)] = i;
      const node& it = g()[n];
      expression_term<scalar> term;
      term.op = it.op;
      term.function = it.function;
      term.constant = it.constant;
      term.leaf = !a.interior(list, i, root);
      term.read = !pulls || reads_all || uses.read[std::size_t(i)];
      term.reached = pulls && uses.reached[std::size_t(i)] && (!term.leaf || trained_leaf(n));
      if (term.leaf) {
        term.wide = it.cols == g()[root.node].cols;
        if (it.op != operation::constant && term.read) {
          const given_type rows = value(n);
          term.value = rows.data;
          term.stride = a.g[a.base(n).node].op == operation::parameter ? 0 : rows.stride;
        }
        if (term.reached) {
          term.assigns = begin(n, references(list, root, a.base(n).node) == 1);
          term.gradient = gradient(n).data;
          term.gradient_stride = gradient(n).stride;
        }
      } else {
        const auto operand = [&](int o) { return o < 0 ? -1 : place[std::size_t(o)]; };
        term.a = operand(it.a), term.b = operand(it.b), term.c = operand(it.c);
      }
      terms[i] = term;
    }
    return {terms, std::size_t(list.size)};
  }
  void forget() { used_ = 0; }

 private:
  static constexpr int pool = 512;

  rows_type columns(position first, position cols) const {
    const rows_type& slot = first < t.width.saved ? saved_ : working_;
    const position column = first < t.width.saved ? first : first - t.width.saved;
    return {slot.data ? slot.data + column * slot.rows : nullptr, slot.rows, cols};
  }
  int references(const term_list& list, expression_root root, int base) const {
    int count = 0;
    for (int i = 0; i < list.size; ++i)
      count += !t.a.interior(list, i, root) && t.a.base(list.node[std::size_t(i)]).node == base;
    return count;
  }

  given_type x_, dy_;
  rows_type y_, dx_;
  rows_type saved_, kept_, working_;
  bool backward_;
  std::array<expression_term<scalar>, pool> terms_;
  int used_ = 0;
};

}  // namespace streambp::autodiff
