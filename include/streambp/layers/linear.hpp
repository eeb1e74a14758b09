// y = x wᵀ + b
#pragma once

#include <cmath>

#include "../primitives/write.hpp"
#include "../split/slot.hpp"
#include "check.hpp"
#include "embedding.hpp"

namespace streambp {

struct linear {
  static constexpr tag<"weight"> weight{};
  static constexpr tag<"bias"> bias{};
  static constexpr const char* name = "linear";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position in = 0;
  position out = 0;
  bool has_bias = false;

  linear(position in, position out, bool has_bias = false) : in(in), out(out), has_bias(has_bias) {
    expect_positive(name, "in", in);
    expect_positive(name, "out", out);
  }

  position features(position given) const {
    [[maybe_unused]] const linear checked(in, out);  // members may have been changed since
    expect_features(name, given, in);
    return out;
  }
  auto slots() const {
    return std::tuple{parameter(weight, out, in, {0, 1 / std::sqrt(double(in))}),
                      parameter(bias, has_bias ? 1 : 0, out, zeros)};
  }

  void forward(auto& at, auto x, auto y) const {
    if (!at.wants_output) return;
    project(at.on, x, at[weight], y);
    if (has_bias) add_bias(at.on, at[bias], y);
  }
  // dw += dyᵀ x, db += Σ dy, dx += dy w
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(weight)) add_weight_gradient(at.on, dy, x, at.d(weight), at.grains());
    if (at.trains(bias)) add_column_sums(at.on, dy, at.d(bias), at.grains());
    project_back(at.on, dy, at[weight], dx, write::add);
  }
};

// y = x tableᵀ with the table of the model's embedding: one parameter used twice.
struct tied_linear {
  static constexpr const char* name = "tied_linear";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position in = 0;
  position out = 0;

  position features(position given) const {
    expect_features(name, given, in);
    return out;
  }
  auto slots() const { return std::tuple{shared_parameter(embedding::table, out, in)}; }

  void forward(auto& at, auto x, auto y) const {
    if (at.wants_output) project(at.on, x, at[embedding::table], y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(embedding::table))
      add_weight_gradient(at.on, dy, x, at.d(embedding::table), at.grains());
    project_back(at.on, dy, at[embedding::table], dx, write::add);
  }
};

}  // namespace streambp
