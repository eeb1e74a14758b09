// Layers whose backward is written by hand: a row layer by the device's primitives, a state from
// row to row and rows that other rows read by plain loops. The laws are those of any layer.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>
#include <streambp/streambp.hpp>

using namespace streambp;

// [rows]
// g = x gateᵀ, u = x upᵀ, y = σ(g) ∘ u
struct gated_unit {
  static constexpr tag<"gate"> gate{};
  static constexpr tag<"up"> up{};
  static constexpr tag<"g"> g{};
  static constexpr tag<"u"> u{};
  static constexpr const char* name = "gated_unit";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position out;

  position features(position) const { return out; }
  auto slots(position in) const {
    return std::tuple{parameter(gate, out, in, {0, 0.1}), parameter(up, out, in, {0, 0.1}),
                      saved(g, out), saved(u, out)};
  }
  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[gate], at[g]);
    project(at.on, x, at[up], at[u]);
    if (at.wants_output) gated_forward(at.on, activation::sigmoid, at[g], at[u], y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    const auto dg = at[g], du = at[u];  // each in the place of what it differentiates
    gated_backward(at.on, activation::sigmoid, dg, du, dy);
    if (at.trains(gate)) add_weight_gradient(at.on, dg, x, at.d(gate), at.grains());
    if (at.trains(up)) add_weight_gradient(at.on, du, x, at.d(up), at.grains());
    project_back(at.on, dg, at[gate], dx, write::add);
    project_back(at.on, du, at[up], dx, write::add);
  }
};
// [/rows]

// [carry]
// h[t] = a ∘ h[t-1] + x[t], y = h
struct leaky_sum {
  static constexpr tag<"a"> a{};
  static constexpr tag<"h"> h{};
  static constexpr tag<"passed"> passed{};
  static constexpr const char* name = "leaky_sum";
  static constexpr bool backward_reads_input = false;

  auto slots(position in) const {
    return std::tuple{parameter(a, 1, in, {0.5, 0.2}), carry(h, 1, in), workspace(passed, in)};
  }
  void forward(auto& at, auto x, auto y) const {
    const auto s = at.states(h);
    for (const piece p : at.pieces()) {
      const auto* before = s.before(p);  // null: zero
      for (position t = p.row; t < p.last(); ++t) {
        for (position j = 0; j < x.cols; ++j)
          y(t, j) = at[a](0, j) * (before ? before[j] : 0) + x(t, j);
        before = y.row(t);
      }
      for (auto* after : {s.kept(p), s.handed_on(p)})
        if (after) std::copy_n(before, x.cols, after);
    }
  }
  // dh[t] = dy[t] + a ∘ dh[t+1], dx = dh, da = Σ dh[t] ∘ h[t-1]; rows last first.
  void backward(auto& at, auto, auto y, auto dy, auto dx) const {
    const auto s = at.states(h);
    // What a row passes down lies in memory, as between chunks: of one in a register, a compiler
    // may make product and sum one operation, rounded once.
    auto* const down = at[passed].row(0);
    at.pieces().descending([&](const piece& p) {
      const auto *start = s.before(p), *after = s.d_after(p);
      for (position j = 0; j < y.cols; ++j) down[j] = after ? after[j] : 0;
      for (position t = p.last(); t-- > p.row;) {
        const auto* before = t > p.row ? y.row(t - 1) : start;
        for (position j = 0; j < y.cols; ++j) {
          const auto dh = dy(t, j) + down[j];
          dx(t, j) += dh;
          if (before && at.trains(a)) at.d(a)(0, j) += dh * before[j];
          down[j] = at[a](0, j) * dh;
        }
      }
      if (auto* d_before = s.d_before(p))
        for (position j = 0; j < y.cols; ++j) d_before[j] += down[j];
    });
  }
};
// [/carry]

// [memory]
// k = x wᵀ, y[t] = mean over the rows s up to t of tanh(x[t] + k[s])
struct soft_mean {
  static constexpr tag<"w"> w{};
  static constexpr tag<"k"> k{};
  static constexpr const char* name = "soft_mean";
  static constexpr bool backward_reads_output = false;
  static constexpr auto sees = past;

  auto slots(position in) const {
    return std::tuple{parameter(w, in, in, {0, 0.3}), memory(k, in)};
  }

  void remember(auto& at, auto x) const { project(at.on, x, at[w], at.own(k)); }

  void forward(auto& at, auto x, auto y) const {
    if (!at.wants_output) return;
    for (const piece p : at.pieces())
      for (position t = p.row; t < p.last(); ++t)
        for (position j = 0; j < x.cols; ++j) {
          double total = 0;
          for (const row_range seen : p.past(t))
            for (position s = seen.first; s < seen.last; ++s)
              total += std::tanh(x(t, j) + at[k](s, j));
          y(t, j) = total / count(p, t);
        }
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    at.pieces().descending([&](const piece& p) {
      for (position t = p.last(); t-- > p.row;)
        for (const row_range seen : p.past(t))
          for (position s = seen.first; s < seen.last; ++s)
            for (position j = 0; j < x.cols; ++j) {
              const double z = std::tanh(x(t, j) + at[k](s, j));
              const double dz = dy(t, j) / count(p, t) * (1 - z * z);
              dx(t, j) += dz;
              at.d(k)(s, j) += dz;
            }
    });
  }
  // No row is left that reads these keys: their gradient is complete, and passes w once.
  void release(auto& at, auto x, auto dx) const {
    const auto dk = at.d_own(k);
    if (at.trains(w)) add_weight_gradient(at.on, dk, x, at.d(w), at.grains());
    project_back(at.on, dk, at[w], dx, write::add);
  }

 private:
  // Rows up to row t of the chunk: of the prefix and the parent, of its own segment, itself.
  static double count(const piece& p, position t) {
    return double(p.before + p.start + (t - p.row) + 1);
  }
};
// [/memory]

int main() {
  // [laws]
  for (const auto& report :
       {laws::hold(gated_unit{5}, laws::rows(37, 4)), laws::hold(leaky_sum{}, laws::rows(37, 4)),
        laws::hold(soft_mean{}, laws::rows(37, 4))}) {
    std::cout << report << "\n";
    if (!report) return 1;
  }
  // [/laws]
}
