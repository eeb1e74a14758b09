// A device that keeps the time of each primitive that layers and engine call on it.
#pragma once

#include <array>
#include <chrono>
#include <cstring>
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

// What has no entry here is run and shows up as time of no primitive.
inline constexpr std::pair<const char*, primitive> timed_primitives[] = {
    {"project", primitive::project},
    {"project_back", primitive::project_back},
    {"add_weight_gradient", primitive::add_weight_gradient},
    {"attention_forward", primitive::attention_forward},
    {"attention_backward", primitive::attention_backward},
    {"rotate", primitive::rotate},
    {"rms_norm_forward", primitive::norm_forward},
    {"rms_norm_backward", primitive::norm_backward},
    {"gated_forward", primitive::gated_forward},
    {"gated_backward", primitive::gated_backward},
    {"row_statistics_of", primitive::row_statistics},
    {"gradient_of_rows", primitive::gradient_of_rows},
    {"gather", primitive::gather},
    {"scatter_add", primitive::scatter_add},
    {"zero", primitive::elementwise},
    {"copy", primitive::elementwise},
    {"sum", primitive::elementwise}};

template <class S>
class timed_device : public streambp::cpu::device<S> {
 public:
  using base = streambp::cpu::device<S>;
  using base::base;
  static constexpr bool is_timed = true;

  // Of the one engine that runs; an engine makes its device itself.
  static inline profile times{};

  // The primitive's time ends with it.
  class running {
   public:
    running(timed_device& of, const char* name) : of_(of), workers_(of.base::enter(name)) {
      if (workers_ == nullptr) return;
      for (const auto& [known, p] : timed_primitives)
        if (std::strcmp(known, name) == 0)
          own_ = &times[std::size_t(p) + (of.head_ && p <= primitive::add_weight_gradient ? 3 : 0)];
      start_ = std::chrono::steady_clock::now();
    }
    ~running() {
      const streambp::big_count before = std::exchange(of_.counted_, of_.flops());
      if (own_ == nullptr) return;
      own_->seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      own_->flops += position(of_.flops() - before);
      ++own_->calls;
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    explicit operator bool() const { return workers_ != nullptr; }
    auto& operator*() const { return *workers_; }

   private:
    timed_device& of_;
    streambp::cpu::workers<S>* workers_;
    primitive_time* own_ = nullptr;
    std::chrono::steady_clock::time_point start_;
  };
  running enter(const char* name) { return {*this, name}; }

  void count(streambp::big_count flops) {
    counted_ = this->flops();
    base::count(flops);
  }
  // Whether the next product's weight is vocabulary-wide.
  void in_head(bool head) { head_ = head; }

 private:
  streambp::big_count counted_;  // FLOPs before the primitive that runs
  bool head_ = false;
};

template <class D>
concept timed = streambp::primitives::device<D> && D::is_timed;
inline constexpr position vocabulary_wide = 8192;

// More constrained than the primitives that they call.
template <timed D>
void project(D& on, streambp::primitives::given<D> x, streambp::primitives::given<D> w,
             streambp::primitives::written<D> y, streambp::write how = streambp::write::assign) {
  on.in_head(w.rows >= vocabulary_wide);
  streambp::primitives::project(on, x, w, y, how);
}
template <timed D>
void project_back(D& on, streambp::primitives::given<D> dy, streambp::primitives::given<D> w,
                  streambp::primitives::written<D> dx,
                  streambp::write how = streambp::write::assign) {
  on.in_head(w.rows >= vocabulary_wide);
  streambp::primitives::project_back(on, dy, w, dx, how);
}
template <timed D>
void add_weight_gradient(D& on, streambp::primitives::given<D> dy, streambp::primitives::given<D> x,
                         streambp::primitives::written<D> dw, std::span<const position> grains) {
  on.in_head(dw.rows >= vocabulary_wide);
  streambp::primitives::add_weight_gradient(on, dy, x, dw, grains);
}

}  // namespace bench
