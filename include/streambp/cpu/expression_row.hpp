// An entry-wise expression at one row, a block of its entries at a time.
#pragma once

#include <algorithm>
#include <span>

#include "../expression/expression.hpp"
#include "entry_kernels.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

namespace entries {

using autodiff::carried, autodiff::expression_term, autodiff::if_any;

template <class S>
class expression_row {
 public:
  using term = expression_term<S>;
  static constexpr std::size_t most = 64;

  expression_row(std::span<const term> terms, position cols) : terms_(terms), cols_(cols) {}

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
    const bool sloped =
        slopes && it.reached &&
        (it.op == operation::power || (it.op == operation::unary && it.function != unary::negate));
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
      case operation::power:
        if (sloped) return power_tangents(x(it.a), it.constant, n, value_[t], slope_[t]);
        return power_values(x(it.a), it.constant, n, value_[t]);
      case operation::add:
        return binary_values<operation::add>(x(it.a), x(it.b), n, value_[t]);
      case operation::subtract:
        return binary_values<operation::subtract>(x(it.a), x(it.b), n, value_[t]);
      case operation::multiply:
        return binary_values<operation::multiply>(x(it.a), x(it.b), n, value_[t]);
      case operation::divide:
        return binary_values<operation::divide>(x(it.a), x(it.b), n, value_[t]);
      case operation::max:
        return binary_values<operation::max>(x(it.a), x(it.b), n, value_[t]);
      case operation::min:
        return binary_values<operation::min>(x(it.a), x(it.b), n, value_[t]);
      case operation::select:
        return select_values(x(it.a), x(it.b), x(it.c), n, value_[t]);
      default:
        at_[t] = x(it.a);  // detach
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
        [[fallthrough]];
      case operation::power:
        return to(it.a, [&, s = slope_[t]](position k) { return carried(at(g, k), at(s, k)); });
      case operation::add:
        return to(it.a, here), to(it.b, here);
      case operation::subtract:
        return to(it.a, here), to(it.b, back);
      case operation::multiply:
        to(it.a, [&, b = x(it.b)](position k) { return carried(at(g, k), at(b, k)); });
        return to(it.b, [&, a = x(it.a)](position k) { return carried(at(g, k), at(a, k)); });
      case operation::divide:
        to(it.a, [&, b = x(it.b)](position k) { return if_any(at(g, k), at(g, k) / at(b, k)); });
        return to(it.b, [&, a = x(it.a), b = x(it.b)](position k) {
          return if_any(at(g, k), -(at(g, k) * (at(a, k) / at(b, k))) / at(b, k));
        });
      case operation::max:
      case operation::min: {  // at a tie to b
        const S* const small = x(it.op == operation::max ? it.b : it.a);
        const S* const large = x(it.op == operation::max ? it.a : it.b);
        const auto first = [&](position k) { return at(small, k) < at(large, k); };
        return split(first, g, it.a, it.b, to);
      }
      case operation::select:
        return split([&, s = x(it.a)](position k) { return lanes<S>(0) < at(s, k); }, g, it.b, it.c,
                     to);
      default:
        return;  // detach
    }
  }
  // g to a where the mask is set, to b elsewhere.
  template <class Mask, class To>
  static void split(const Mask& first, const S* g, int a, int b, const To& to) {
    to(a, [&](position k) { return select(first(k), load<S>(g + k), lanes<S>(0)); });
    to(b, [&](position k) { return select(first(k), lanes<S>(0), load<S>(g + k)); });
  }

  void pull_leaf(std::size_t t, position j, position n) {
    const term& it = terms_[t];
    const S* const g = gradient_[t];
    if (!it.wide)
      return along<S>(n,
                      [&](position k, auto some) { across_[t] = across_[t] + load(g + k, some); });
    S* const to = it.gradient + row_ * it.gradient_stride + j;
    if (it.assigns)
      std::copy_n(g, n, to);
    else
      add_entries(g, n, to);
  }
  [[gnu::noinline, gnu::flatten]] static void add_entries(const S* x, position n, S* y) {
    along<S>(n, [&](position k, auto some) {
      store(y + k, some, load(y + k, some) + load(x + k, some));
    });
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

}  // namespace entries

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
