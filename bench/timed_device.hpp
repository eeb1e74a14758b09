// A device that keeps the time of each primitive that layers and engine call on it.
#pragma once

#include <array>
#include <chrono>
#include <streambp/streambp.hpp>
#include <utility>

namespace bench {

using streambp::position;
using streambp::view;

enum class primitive : unsigned char {
  project,
  project_back,
  add_weight_gradient,
  head_project,  // the same three, with a vocabulary-wide weight
  head_project_back,
  head_add_weight_gradient,
  attention_forward,
  attention_backward,
  rotate,
  norm_forward,
  norm_backward,
  gated_forward,
  gated_backward,
  row_statistics,
  gradient_of_rows,
  gather,
  scatter_add,
  elementwise,  // zero, copy, sum, add
  count
};

inline constexpr std::array<const char*, std::size_t(primitive::count)> primitive_names{
    "project",
    "project_back",
    "add_weight_gradient",
    "head project",
    "head project_back",
    "head add_weight_gradient",
    "attention_forward",
    "attention_backward",
    "rotate",
    "norm_forward",
    "norm_backward",
    "gated_forward",
    "gated_backward",
    "head row_statistics_of",
    "head gradient_of_rows",
    "gather",
    "scatter_add",
    "zero, copy, sum, add"};

struct primitive_time {
  double seconds = 0;
  position calls = 0;
  position flops = 0;
};

using profile = std::array<primitive_time, std::size_t(primitive::count)>;

// A primitive called on it is found below, by its first argument, and passed on to the CPU's. What
// has no entry here is the CPU's directly and shows up as time of no primitive.
template <class S>
class timed_device : public streambp::cpu::device<S> {
 public:
  using base = streambp::cpu::device<S>;
  using base::base;

  // Of the one engine that runs; an engine makes its device itself.
  static inline profile times{};

  template <class Work>
  void time(primitive p, const Work& work) {
    if (this->counts_only()) return work(static_cast<base&>(*this));
    primitive_time& own = times[std::size_t(p)];
    const position before = this->flops();
    const auto start = std::chrono::steady_clock::now();
    work(static_cast<base&>(*this));
    own.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    own.flops += this->flops() - before;
    ++own.calls;
  }
};

template <class S>
using rows = std::type_identity_t<view<const S>>;

inline constexpr position vocabulary_wide = 8192;

template <class S>
primitive of_width(rows<S> weight, primitive trunk, primitive head) {
  return weight.rows >= vocabulary_wide ? head : trunk;
}

template <class S>
void project(timed_device<S>& on, rows<S> x, rows<S> w, view<S> y,
             streambp::write how = streambp::write::assign) {
  on.time(of_width<S>(w, primitive::project, primitive::head_project),
          [&](auto& base) { streambp::cpu::project(base, x, w, y, how); });
}
template <class S>
void project_back(timed_device<S>& on, rows<S> dy, rows<S> w, view<S> dx,
                  streambp::write how = streambp::write::assign) {
  on.time(of_width<S>(w, primitive::project_back, primitive::head_project_back),
          [&](auto& base) { streambp::cpu::project_back(base, dy, w, dx, how); });
}
template <class S>
void add_weight_gradient(timed_device<S>& on, rows<S> dy, rows<S> x, view<S> dw,
                         std::span<const position> grains) {
  on.time(of_width<S>(dw, primitive::add_weight_gradient, primitive::head_add_weight_gradient),
          [&](auto& base) { streambp::cpu::add_weight_gradient(base, dy, x, dw, grains); });
}
template <class S, class... Rest>
void attention_forward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::attention_forward,
          [&](auto& base) { streambp::cpu::attention_forward(base, rest...); });
}
template <class S, class... Rest>
void attention_backward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::attention_backward,
          [&](auto& base) { streambp::cpu::attention_backward(base, rest...); });
}
template <class S, class... Rest>
void rotate(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::rotate, [&](auto& base) { streambp::cpu::rotate(base, rest...); });
}
template <class S, class... Rest>
void rms_norm_forward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::norm_forward,
          [&](auto& base) { streambp::cpu::rms_norm_forward(base, rest...); });
}
template <class S, class... Rest>
void rms_norm_backward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::norm_backward,
          [&](auto& base) { streambp::cpu::rms_norm_backward(base, rest...); });
}
template <class S, class... Rest>
void gated_forward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::gated_forward,
          [&](auto& base) { streambp::cpu::gated_forward(base, rest...); });
}
template <class S, class... Rest>
void gated_backward(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::gated_backward,
          [&](auto& base) { streambp::cpu::gated_backward(base, rest...); });
}
template <class S, class... Rest>
void row_statistics_of(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::row_statistics,
          [&](auto& base) { streambp::cpu::row_statistics_of(base, rest...); });
}
template <class S, class... Rest>
void gradient_of_rows(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::gradient_of_rows,
          [&](auto& base) { streambp::cpu::gradient_of_rows(base, rest...); });
}
template <class S, class... Rest>
void gather(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::gather, [&](auto& base) { streambp::cpu::gather(base, rest...); });
}
template <class S, class... Rest>
void scatter_add(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::scatter_add, [&](auto& base) { streambp::cpu::scatter_add(base, rest...); });
}
template <class S, class... Rest>
void zero(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::elementwise, [&](auto& base) { streambp::cpu::zero(base, rest...); });
}
template <class S, class... Rest>
void copy(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::elementwise, [&](auto& base) { streambp::cpu::copy(base, rest...); });
}
template <class S, class... Rest>
void sum(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::elementwise, [&](auto& base) { streambp::cpu::sum(base, rest...); });
}
template <class S, class... Rest>
void add(timed_device<S>& on, const Rest&... rest) {
  on.time(primitive::elementwise, [&](auto& base) { streambp::cpu::add(base, rest...); });
}

}  // namespace bench
