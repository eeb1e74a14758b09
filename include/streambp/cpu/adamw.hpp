// The step of AdamW, piece by piece.
#pragma once

#include <atomic>
#include <cmath>
#include <limits>

#include "../primitives/adamw.hpp"
#include "device.hpp"
#include "lanes.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// The packet's own root is an approximation that differs between machines.
template <class S>
lanes<S> exact_root(const lanes<S>& v) {
  alignas(64) S lane[lanes<S>::count];
  store(lane, whole<S>{}, v);
  for (S& x : lane) x = std::sqrt(x);
  return load(lane, whole<S>{});
}

template <class S>
void adamw_piece_update(const adamw_step& s, const adamw_piece& p, S* theta, const S* gradient,
                        S* m, S* v) {
  const lanes<S> shrink = S(p.decays ? s.shrink : 1), first = S(s.first),
                 keep_second = S(s.keep_second), second = S(s.second),
                 root_factor = S(s.root_factor), epsilon = S(s.epsilon), rate = S(-s.rate),
                 factor = S(s.factor);
  along<S>(p.entries, [&](position j, auto n) {
    const lanes<S> g = load(gradient + j, n) * factor;
    const lanes<S> old = load<S>(m + j, n);
    const lanes<S> m_new = fma(first, g - old, old);
    const lanes<S> v_new = fma(keep_second, load<S>(v + j, n), second * (g * g));
    const lanes<S> pace = m_new / fma(exact_root(v_new), root_factor, epsilon);
    store(m + j, n, m_new);
    store(v + j, n, v_new);
    store(theta + j, n, fma(rate, pace, load<S>(theta + j, n) * shrink));
  });
}

template <class S>
void adamw_update(workers<S>& on, const adamw_step& step, std::span<const adamw_piece> pieces,
                  std::span<S> parameters, std::span<const S> gradient, std::span<S> first,
                  std::span<S> second) {
  on.parallel(position(pieces.size()), [&](position i, int) {
    const adamw_piece& p = pieces[std::size_t(i)];
    adamw_piece_update(step, p, parameters.data() + p.parameter, gradient.data() + p.gradient,
                       first.data() + p.gradient, second.data() + p.gradient);
  });
}

template <class S>
position first_unusable(workers<S>& on, std::span<const adamw_piece> pieces,
                        std::span<const S> gradient, double factor) {
  std::atomic<position> bad = position(gradient.size());
  const S least = std::sqrt(std::numeric_limits<S>::max());
  on.parallel(position(pieces.size()), [&](position i, int) {
    const adamw_piece& p = pieces[std::size_t(i)];
    const S* const g = gradient.data() + p.gradient;
    const auto usable = [&](S x) { return std::abs(x) * S(factor) < least; };
    bool all = true;  // without a branch an entry
    for (position j = 0; j < p.entries; ++j) all &= usable(g[j]);
    for (position j = 0; !all && j < p.entries; ++j)
      if (!usable(g[j])) {
        position before = bad;
        while (p.gradient + j < before && !bad.compare_exchange_weak(before, p.gradient + j)) {
        }
        return;
      }
  });
  return bad;
}

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
