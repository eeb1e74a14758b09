// AdamW: Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "../core/overlap.hpp"
#include "../default_device.hpp"
#include "../primitives/adamw.hpp"
#include "../primitives/elementwise.hpp"
#include "../primitives/look.hpp"
#include "../schedule/parameters.hpp"

namespace streambp {

struct adamw_options {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;  // of parameters of more than one row: not of gains and biases
};

// m ← β1 m + (1 − β1) g          v ← β2 v + (1 − β2) g²
// θ ← θ − rate · decay · θ − rate · m̂ / (sqrt v̂ + ε),   m̂ = m / (1 − β1ᵗ), v̂ = v / (1 − β2ᵗ)
// Moments stand at the offsets of the gradient buffer, in the device's memory as that and the
// parameters do. The bits do not depend on the threads.
template <class Scalar, primitives::computing_device Device = default_device<Scalar>>
class adamw {
 public:
  // Throws data_error when an option cannot be.
  explicit adamw(const parameter_table& table, adamw_options options = {}, int threads = 1)
      : options_(checked(options, threads)),
        parameters_(table.parameters),
        gradients_(table.gradients),
        entries_(table.entries),
        first_(std::size_t(gradients_) * sizeof(Scalar)),
        second_(std::size_t(gradients_) * sizeof(Scalar)),
        on_(threads) {
    zero(on_, row(moments(first_)));
    zero(on_, row(moments(second_)));
    for (const parameter_info& p : table.entries)
      for (position done = 0; p.gradient >= 0 && done < p.size(); done += block)
        pieces_.push_back(
            {p.offset + done, p.gradient + done, std::min(block, p.size() - done), p.rows > 1});
  }

  // One step along gradient · factor (see clip_factor). Throws shape_error unless the buffers are
  // those of the table, data_error when a rate, a factor or an entry of the gradient cannot be;
  // then nothing has changed.
  void update(std::span<Scalar> parameters, std::span<const Scalar> gradient, double rate,
              double factor = 1) {
    expect_size("parameters", parameters.size(), parameters_);
    expect_size("gradient", gradient.size(), gradients_);
    if (overlap(bytes_of(parameters), bytes_of(gradient)))
      throw shape_error("adamw: gradient and parameters share memory; each has its own");
    expect("rate", rate, rate >= 0, "not negative");
    expect("factor", factor, factor >= 0, "not negative");
    expect_usable(gradient, factor);
    ++steps_;
    const double t = double(steps_);
    const adamw_step s{1 - options_.beta1,
                       options_.beta2,
                       1 - options_.beta2,
                       rate / (1 - std::pow(options_.beta1, t)),
                       1 / std::sqrt(1 - std::pow(options_.beta2, t)),
                       options_.epsilon,
                       1 - rate * options_.decay,
                       factor};
    adamw_update(on_, s, pieces_, parameters, gradient, moments(first_), moments(second_));
  }

  // Goes on where another one stood; the host's copies of its moments. Throws shape_error or
  // data_error for what cannot be its moments; then nothing has changed.
  void restore(position steps, std::span<const Scalar> first, std::span<const Scalar> second) {
    expect_size("restore's first moments", first.size(), gradients_);
    expect_size("restore's second moments", second.size(), gradients_);
    if (steps < 0)
      throw data_error(sentence("adamw: restore after ", steps, " steps; they are not negative"));
    for (const parameter_info& p : entries_)
      for (position i = p.gradient; p.gradient >= 0 && i < p.gradient + p.size(); ++i) {
        const Scalar m = first[std::size_t(i)], v = second[std::size_t(i)];
        if (!std::isfinite(m) || !std::isfinite(v) || v < 0)
          throw data_error(sentence("adamw: restore's moments of ", p.name, " are ", m, " and ", v,
                                    " at entry ", i - p.gradient,
                                    "; both are finite, the second is not negative"));
      }
    steps_ = steps;
    write_rows(on_, first, row(moments(first_)));
    write_rows(on_, second, row(moments(second_)));
  }

  const adamw_options& options() const { return options_; }
  position steps() const { return steps_; }
  std::span<const Scalar> first_moments() const { return moments(first_); }
  std::span<const Scalar> second_moments() const { return moments(second_); }

 private:
  static constexpr position block = position(1) << 14;

  std::span<Scalar> moments(const typename Device::memory& m) const {
    return {reinterpret_cast<Scalar*>(m.data()), std::size_t(gradients_)};
  }
  template <class S>
  static view<S> row(std::span<S> entries) {
    return {entries.data(), 1, position(entries.size())};
  }

  // Throws data_error at the first entry that is not finite, or whose square is not.
  void expect_usable(std::span<const Scalar> gradient, double factor) {
    const position bad =
        first_unusable(on_, std::span<const adamw_piece>(pieces_), gradient, factor);
    if (bad == gradients_) return;
    for (const parameter_info& p : entries_)
      if (const position i = bad - p.gradient; p.gradient >= 0 && i >= 0 && i < p.size())
        throw data_error(
            sentence("adamw: the gradient of ", p.name, " is ", entry(on_, row(gradient), 0, bad),
                     " at row ", i / p.cols, ", column ", i % p.cols,
                     "; it and its square must be finite: leave this step out, or look "
                     "where it comes from"));
  }

  static void expect(const char* what, double value, bool in_range, const char* range) {
    if (!std::isfinite(value) || !in_range)
      throw data_error(sentence("adamw: ", what, " is ", value, "; it is finite and ", range));
  }
  static adamw_options checked(const adamw_options& o, int threads) {
    expect("beta1", o.beta1, o.beta1 >= 0 && o.beta1 < 1, "in [0, 1)");
    expect("beta2", o.beta2, o.beta2 >= 0 && o.beta2 < 1, "in [0, 1)");
    expect("epsilon", o.epsilon, o.epsilon >= 0, "not negative");
    expect("decay", o.decay, o.decay >= 0, "not negative");
    expect("threads", threads, threads >= 1, "at least 1");
    return o;
  }
  static void expect_size(const char* what, std::size_t size, position wanted) {
    if (position(size) != wanted)
      throw shape_error(
          sentence("adamw: ", what, " has ", size, " entries, the table has ", wanted));
  }

  adamw_options options_;
  position parameters_ = 0, gradients_ = 0;
  std::vector<parameter_info> entries_;
  position steps_ = 0;
  typename Device::memory first_, second_;
  std::vector<adamw_piece> pieces_;
  Device on_;
};

}  // namespace streambp
