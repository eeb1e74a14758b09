// Layers whose flags are not true.
#pragma once

#include <streambp/model/compose.hpp>
#include <streambp/primitives/write.hpp>
#include <streambp/split/slot.hpp>

namespace streambp {

// y = x ∘ x; says that backward reads no x, and reads it.
struct reads_input {
  static constexpr const char* name = "reads_input";
  static constexpr bool backward_reads_input = false, backward_reads_output = false;

  void forward(auto&, auto x, auto y) const {
    for (position i = 0; i < y.rows; ++i)
      for (position j = 0; j < y.cols; ++j) y(i, j) = x(i, j) * x(i, j);
  }
  void backward(auto&, auto x, auto, auto dy, auto dx) const {
    for (position i = 0; i < dy.rows; ++i)
      for (position j = 0; j < dy.cols; ++j) dx(i, j) += 2 * x(i, j) * dy(i, j);
  }
};

// y = x; says that it counts FLOPs, which takes no data, and looks at data.
struct counts_in_a_loop {
  static constexpr const char* name = "counts_in_a_loop";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  void forward(auto&, auto x, auto y) const {
    for (position i = 0; i < y.rows; ++i)
      for (position j = 0; j < y.cols; ++j) y(i, j) = x(i, j);
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const { add(at.on, dy, dx); }
};

// y = x wᵀ, computed twice after the first chunk though the planner sees it once.
struct counts_wrong {
  static constexpr tag<"w"> w{};
  static constexpr const char* name = "counts_wrong";
  static constexpr bool counts_flops = true, backward_reads_output = false;

  position width = 0;

  auto slots() const { return std::tuple{parameter(w, width, width, zeros)}; }

  void forward(auto& at, auto x, auto y) const {
    project(at.on, x, at[w], y);
    if (at.chunk.index > 0) project(at.on, x, at[w], y);
  }
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    if (at.trains(w)) add_weight_gradient(at.on, dy, x, at.d(w), at.grains());
    project_back(at.on, dy, at[w], dx, write::add);
  }
};

}  // namespace streambp
