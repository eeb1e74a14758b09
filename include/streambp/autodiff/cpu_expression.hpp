// Entry-wise expressions on the CPU: row by row, a few hundred bytes of each term at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "../cpu/rows.hpp"
#include "expression.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

template <class S>
lanes<S> log(const lanes<S>& x) {
  if constexpr (packets::packet_traits<S>::HasLog) {
    return lanes<S>::each([](const auto& p) { return packets::plog(p); }, x);
  } else {
    alignas(64) S entry[lanes<S>::count];
    store(entry, whole<S>{}, x);
    for (S& e : entry) e = std::log(e);
    return load<S>(entry);
  }
}
template <class S>
lanes<S> sqrt(const lanes<S>& x) {
  return lanes<S>::each([](const auto& p) { return packets::psqrt(p); }, x);
}
template <class S>
lanes<S> abs(const lanes<S>& x) {
  return lanes<S>::each([](const auto& p) { return packets::pabs(p); }, x);
}

namespace entries {

using autodiff::expression_term;
using autodiff::operation;
using autodiff::unary;

// Entries of a row that are in work together; a buffer holds them and what fills up its lanes.
template <class S>
inline constexpr position block = 512 / sizeof(S);

template <class S, class F>
void for_lanes(position n, const F& f) {
  for (position k = 0; k < n; k += lanes<S>::count) f(k);
}

template <unary f, class S>
[[gnu::noinline, gnu::flatten]] void unary_values(const S* x, position n, S* y) {
  for_lanes<S>(n, [&](position k) {
    store(y + k, whole<S>{}, autodiff::tangent_at<f>(load<S>(x + k)).value);
  });
}
template <unary f, class S>
[[gnu::noinline, gnu::flatten]] void unary_tangents(const S* x, position n, S* y, S* slope) {
  for_lanes<S>(n, [&](position k) {
    const auto t = autodiff::tangent_at<f>(load<S>(x + k));
    store(y + k, whole<S>{}, t.value);
    store(slope + k, whole<S>{}, t.slope);
  });
}
template <operation op, class S>
[[gnu::noinline, gnu::flatten]] void binary_values(const S* x1, const S* x2, position n, S* y) {
  for_lanes<S>(n, [&](position k) {
    const lanes<S> a = load<S>(x1 + k), b = load<S>(x2 + k);
    if constexpr (op == operation::add) store(y + k, whole<S>{}, a + b);
    if constexpr (op == operation::subtract) store(y + k, whole<S>{}, a - b);
    if constexpr (op == operation::multiply) store(y + k, whole<S>{}, a * b);
    if constexpr (op == operation::divide) store(y + k, whole<S>{}, a / b);
    if constexpr (op == operation::max) store(y + k, whole<S>{}, select(a < b, b, a));
    if constexpr (op == operation::min) store(y + k, whole<S>{}, select(b < a, b, a));
  });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void select_values(const S* s, const S* x1, const S* x2, position n,
                                                   S* y) {
  for_lanes<S>(n, [&](position k) {
    store(y + k, whole<S>{}, select(lanes<S>(0) < load<S>(s + k), load<S>(x1 + k), load<S>(x2 + k)));
  });
}

// to (+)= what f gives at each place.
template <class S, class F>
[[gnu::noinline, gnu::flatten]] void give(S* to, bool adds, position n, const F& f) {
  if (adds)
    for_lanes<S>(n, [&](position k) { store(to + k, whole<S>{}, load<S>(to + k) + f(k)); });
  else
    for_lanes<S>(n, [&](position k) { store(to + k, whole<S>{}, f(k)); });
}

// Calls f with the function as a constant.
template <class F>
void with_constant(unary function, const F& f) {
  using enum unary;
  const auto call = [&]<unary known>() { f(std::integral_constant<unary, known>{}); };
  switch (function) {
    case negate: return call.template operator()<negate>();
    case unary::exp: return call.template operator()<unary::exp>();
    case unary::log: return call.template operator()<unary::log>();
    case unary::tanh: return call.template operator()<unary::tanh>();
    case sigmoid: return call.template operator()<sigmoid>();
    case silu: return call.template operator()<silu>();
    case gelu: return call.template operator()<gelu>();
    case relu: return call.template operator()<relu>();
    case square: return call.template operator()<square>();
    case unary::sqrt: return call.template operator()<unary::sqrt>();
    case unary::abs: return call.template operator()<unary::abs>();
  }
}

// An expression at one block of one row.
template <class S>
class work {
 public:
  using term = expression_term<S>;
  static constexpr std::size_t most = 64;

  work(std::span<const term> terms, position cols) : terms_(terms), cols_(cols) {}

  void begin_row(position row) {
    row_ = row;
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const term& it = terms_[t];
      across_[t] = 0;
      if (!it.leaf || !it.read || (it.wide && it.op != operation::constant)) continue;
      std::fill_n(value_[t], block<S>,
                  it.op == operation::constant ? S(it.constant) : it.value[row * it.stride]);
      at_[t] = value_[t];
    }
  }
  // f(j, n): values of the entries [j, j + n) are at result().
  template <class F>
  void for_blocks(bool slopes, const F& f) {
    for (position j = 0; j < cols_; j += block<S>) {
      const position n = std::min(block<S>, cols_ - j);
      for (std::size_t t = 0; t < terms_.size(); ++t) value_of(t, j, n, slopes);
      f(j, n);
    }
  }
  const S* result() const { return at_[terms_.size() - 1]; }

  // seed: rows of entries, filled up to whole lanes.
  S* seed() { return gradient_[terms_.size() - 1]; }
  void pull(position j, position n) {
    std::fill_n(touched_, terms_.size(), false);
    touched_[terms_.size() - 1] = true;
    for (std::size_t t = terms_.size(); t-- > 0;)
      if (terms_[t].reached && touched_[t]) pull_term(t, j, n);
  }
  // Gradients of what is one for all columns.
  void end_row() {
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const term& it = terms_[t];
      if (!it.leaf || !it.reached || it.wide) continue;
      S& to = it.gradient[row_ * it.gradient_stride];
      to = it.assigns ? sum(across_[t]) : to + sum(across_[t]);
    }
  }

 private:
  static position filled(position n) { return round_up(n, lanes<S>::count); }

  void value_of(std::size_t t, position j, position n, bool slopes) {
    const term& it = terms_[t];
    const auto x = [&](int operand) { return at_[std::size_t(operand)]; };
    if (it.leaf) {
      if (!it.read || !it.wide || it.op == operation::constant) return;
      at_[t] = it.value + row_ * it.stride + j;
      if (n == filled(n)) return;
      std::copy_n(at_[t], n, value_[t]);
      std::fill(value_[t] + n, value_[t] + filled(n), S(0));
      at_[t] = value_[t];
      return;
    }
    const bool sloped = slopes && it.op == operation::unary && it.function != unary::negate && it.reached;
    if (!it.read && !sloped) return;
    at_[t] = value_[t];
    switch (it.op) {
      case operation::unary:
        return with_constant(it.function, [&](auto f) {
          if (sloped)
            unary_tangents<f.value>(x(it.a), n, value_[t], slope_[t]);
          else
            unary_values<f.value>(x(it.a), n, value_[t]);
        });
      case operation::add: return binary_values<operation::add>(x(it.a), x(it.b), n, value_[t]);
      case operation::subtract: return binary_values<operation::subtract>(x(it.a), x(it.b), n, value_[t]);
      case operation::multiply: return binary_values<operation::multiply>(x(it.a), x(it.b), n, value_[t]);
      case operation::divide: return binary_values<operation::divide>(x(it.a), x(it.b), n, value_[t]);
      case operation::max: return binary_values<operation::max>(x(it.a), x(it.b), n, value_[t]);
      case operation::min: return binary_values<operation::min>(x(it.a), x(it.b), n, value_[t]);
      case operation::select: return select_values(x(it.a), x(it.b), x(it.c), n, value_[t]);
      default: at_[t] = x(it.a);  // detach
    }
  }

  void pull_term(std::size_t t, position j, position n) {
    const term& it = terms_[t];
    const S* const g = gradient_[t];
    if (it.leaf) return pull_leaf(t, j, n);
    const auto x = [&](int operand) { return at_[std::size_t(operand)]; };
    const auto to = [&](int operand, const auto& f) {
      const auto o = std::size_t(operand);
      if (!terms_[o].reached) return;
      give(gradient_[o], touched_[o], n, f);
      touched_[o] = true;
    };
    const auto at = [](const S* p, position k) { return load<S>(p + k); };
    const auto here = [&](position k) { return at(g, k); };
    const auto back = [&](position k) { return -at(g, k); };
    switch (it.op) {
      case operation::unary:
        if (it.function == unary::negate) return to(it.a, back);
        return to(it.a, [&, s = slope_[t]](position k) { return at(g, k) * at(s, k); });
      case operation::add: return to(it.a, here), to(it.b, here);
      case operation::subtract: return to(it.a, here), to(it.b, back);
      case operation::multiply:
        to(it.a, [&, b = x(it.b)](position k) { return at(g, k) * at(b, k); });
        return to(it.b, [&, a = x(it.a)](position k) { return at(g, k) * at(a, k); });
      case operation::divide:
        to(it.a, [&, b = x(it.b)](position k) { return at(g, k) / at(b, k); });
        return to(it.b, [&, a = x(it.a), b = x(it.b)](position k) {
          return -(at(g, k) * (at(a, k) / at(b, k))) / at(b, k);
        });
      case operation::max:
      case operation::min:  // at a tie to b
        return share(it, [&, a = x(it.op == operation::max ? it.b : it.a),
                          b = x(it.op == operation::max ? it.a : it.b)](position k) {
          return at(a, k) < at(b, k);
        }, g, it.a, it.b, to);
      case operation::select:
        return share(it, [&, s = x(it.a)](position k) { return lanes<S>(0) < at(s, k); }, g, it.b, it.c, to);
      default: return;  // detach
    }
  }
  template <class Mask, class To>
  void share(const term&, const Mask& first, const S* g, int a, int b, const To& to) {
    to(a, [&](position k) { return select(first(k), load<S>(g + k), lanes<S>(0)); });
    to(b, [&](position k) { return select(first(k), lanes<S>(0), load<S>(g + k)); });
  }

  void pull_leaf(std::size_t t, position j, position n) {
    const term& it = terms_[t];
    const S* const g = gradient_[t];
    if (!it.wide)
      return along<S>(n, [&](position k, auto some) { across_[t] = across_[t] + load(g + k, some); });
    S* const to = it.gradient + row_ * it.gradient_stride + j;
    if (it.assigns)
      std::copy_n(g, n, to);
    else
      add_entries(g, n, to);
  }
  [[gnu::noinline, gnu::flatten]] static void add_entries(const S* x, position n, S* y) {
    along<S>(n, [&](position k, auto some) { store(y + k, some, load(y + k, some) + load(x + k, some)); });
  }

  std::span<const term> terms_;
  position cols_;
  position row_ = 0;
  const S* at_[most] = {};
  bool touched_[most];
  lanes<S> across_[most];
  alignas(64) S value_[most][block<S>];
  alignas(64) S slope_[most][block<S>];
  alignas(64) S gradient_[most][block<S>];
};

template <class S>
[[gnu::noinline, gnu::flatten]] void add_up(const S* x, position n, lanes<S>& total) {
  along<S>(n, [&](position k, auto some) { total = total + load(x + k, some); });
}
template <class S>
[[gnu::noinline, gnu::flatten]] void find_largest(const S* x, position n, lanes<S>& top) {
  constexpr S least = -std::numeric_limits<S>::infinity();
  along<S>(n, [&](position k, auto some) { top = max(top, load(x + k, some, least)); });
}

// Calls f(work, row) for the rows.
template <class S, class F>
void for_rows_of(device<S>& on, std::span<const expression_term<S>> terms, position cols, row_range rows,
                 const F& f) {
  for_row_ranges(on, rows.rows(), cols * position(terms.size()), [&](position first, position last) {
    work<S> w(terms, cols);
    for (position row = rows.first + first; row < rows.first + last; ++row) {
      w.begin_row(row);
      f(w, row);
    }
  });
}

}  // namespace entries

// y = the expression, in the given rows.
template <class S>
void evaluate(device<S>& on, std::span<const autodiff::expression_term<S>> terms, view<S> y,
              row_range rows) {
  if (on.counts_only()) return;
  entries::for_rows_of(on, terms, y.cols, rows, [&](auto& w, position row) {
    w.for_blocks(false, [&](position j, position n) { std::copy_n(w.result(), n, y.row(row) + j); });
  });
}

// y (rows, 1) = the sum, or the largest, of each row of an expression of `cols` columns.
template <class S>
void evaluate_sum(device<S>& on, std::span<const autodiff::expression_term<S>> terms, position cols,
                  view<S> y, row_range rows) {
  if (on.counts_only()) return;
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    lanes<S> total = 0;
    w.for_blocks(false, [&](position, position n) { entries::add_up(w.result(), n, total); });
    y(row, 0) = sum(total);
  });
}
template <class S>
void evaluate_max(device<S>& on, std::span<const autodiff::expression_term<S>> terms, position cols,
                  view<S> y, row_range rows) {
  if (on.counts_only()) return;
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    lanes<S> top = -std::numeric_limits<S>::infinity();
    w.for_blocks(false, [&](position, position n) { entries::find_largest(w.result(), n, top); });
    y(row, 0) = largest(top);
  });
}

// From dy, of `cols` columns or of one for all, to the gradients of the expression's leaves.
template <class S>
void differentiate(device<S>& on, std::span<const autodiff::expression_term<S>> terms, position cols,
                   std::type_identity_t<view<const S>> dy, row_range rows) {
  if (on.counts_only()) return;
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    w.for_blocks(true, [&](position j, position n) {
      S* const seed = w.seed();
      if (dy.cols == 1)
        std::fill_n(seed, n, dy(row, 0));
      else
        std::copy_n(dy.row(row) + j, n, seed);
      std::fill(seed + n, seed + round_up(n, lanes<S>::count), S(0));
      w.pull(j, n);
    });
    w.end_row();
  });
}

// The same from dy (rows, 1) of evaluate_max, whose result was y.
template <class S>
void differentiate_max(device<S>& on, std::span<const autodiff::expression_term<S>> terms, position cols,
                       std::type_identity_t<view<const S>> y, std::type_identity_t<view<const S>> dy,
                       row_range rows) {
  if (on.counts_only()) return;
  entries::for_rows_of(on, terms, cols, rows, [&](auto& w, position row) {
    bool found = false;
    w.for_blocks(true, [&](position j, position n) {
      S* const seed = w.seed();
      const position first = found ? n : std::find(w.result(), w.result() + n, y(row, 0)) - w.result();
      std::fill(seed, seed + round_up(n, lanes<S>::count), S(0));
      if (first < n) seed[first] = dy(row, 0);
      found = found || first < n;
      w.pull(j, n);
    });
    w.end_row();
  });
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
