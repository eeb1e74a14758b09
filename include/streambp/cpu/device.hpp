// The CPU as the engine sees it: its scalar, its threads, their packing buffers, its FLOP counter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "../core/grain.hpp"
#include "../core/view.hpp"
#include "../primitives/task_runner.hpp"
#include "blocking.hpp"
#include "isa.hpp"
#include "pool.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// The primitives (product.hpp, attention.hpp, rows.hpp, ...) are free functions that take a device
// first. A device without threads of its own counts only: primitives then add their FLOPs and touch
// no data.
template <class Scalar>
class device {
 public:
  using scalar = Scalar;

  // Counts only.
  device() = default;

  explicit device(int threads) : pool_(std::make_unique<cpu::pool>(threads)) {}

  bool counts_only() const { return pool_ == nullptr; }
  int threads() const { return pool_ ? pool_->threads() : 1; }

  // Bytes that `threads` threads need to pack the operands of products.
  static constexpr std::size_t packing_bytes(int threads) {
    return std::size_t(threads) * blocking<Scalar>::packing * sizeof(Scalar);
  }
  // Lends packing_bytes(threads()) bytes, 64-byte aligned, for as long as the device is used.
  void lend(std::byte* packing) { packing_ = reinterpret_cast<Scalar*>(packing); }
  Scalar* packing(int thread) const { return packing_ + thread * blocking<Scalar>::packing; }

  template <class Task>
  void parallel(position tasks, const Task& task) const {
    if (runner_ == nullptr) return pool_->run(tasks, task);
    runner_->run(
        tasks, [](const void* f, position i, int t) { (*static_cast<const Task*>(f))(i, t); },
        &task);
  }
  // Tasks go to `by` until it is null again; loops over rows then have a task a row.
  void run_by(task_runner* by) { runner_ = by; }
  bool row_by_row() const { return runner_ != nullptr; }

  void count(position flops) { flops_ += flops; }
  position flops() const { return flops_; }
  void reset_flops(position flops = 0) { flops_ = flops; }

 private:
  std::unique_ptr<cpu::pool> pool_;
  Scalar* packing_ = nullptr;
  task_runner* runner_ = nullptr;
  position flops_ = 0;
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
