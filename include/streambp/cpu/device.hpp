// The CPU as the engine sees it: its memory, its threads and their packing buffers.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "../primitives/device.hpp"
#include "../primitives/task_runner.hpp"
#include "blocking.hpp"
#include "isa.hpp"
#include "mapped_block.hpp"
#include "pool.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Who computes: threads and the buffers they pack products in. The bodies of primitives
// (product.hpp, attention.hpp, rows.hpp, ...) are free functions that take workers first.
template <class Scalar>
class workers {
 public:
  workers() = default;
  explicit workers(int threads) : pool_(std::make_unique<cpu::pool>(threads)) {}

  bool none() const { return pool_ == nullptr; }
  int threads() const { return pool_->threads(); }
  packing_space<Scalar> packing(int thread) const {
    return {packing_.data + thread * blocking<Scalar>::packing(packing_.columns), packing_.columns};
  }
  // The first thread's; the others' follow.
  void lend(packing_space<Scalar> packing) { packing_ = packing; }

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

 private:
  std::unique_ptr<cpu::pool> pool_;
  packing_space<Scalar> packing_ = nullptr;
  task_runner* runner_ = nullptr;
};

template <class Scalar>
class device : public primitives::counting<Scalar> {
  using sizes = blocking<Scalar>;

 public:
  using memory = mapped_block;

  // Counts only.
  device() = default;
  explicit device(int threads) : workers_(threads) {}

  bool counts_only() const { return workers_.none(); }
  int threads() const { return counts_only() ? 1 : workers_.threads(); }

  // Bytes that `threads` threads need to pack the operands of products of matrices that have no
  // side longer than this.
  static constexpr std::size_t packing_bytes(int threads, position longest = sizes::columns) {
    return std::size_t(threads) * std::size_t(sizes::packing(sizes::columns_for(longest))) *
           sizeof(Scalar);
  }
  // packing_bytes(threads, longest) bytes, 64-byte aligned.
  void lend(std::byte* packing, position longest = sizes::columns) {
    workers_.lend({reinterpret_cast<Scalar*>(packing), sizes::columns_for(longest)});
  }

  cpu::workers<Scalar>* enter(const char*) { return counts_only() ? nullptr : &workers_; }
  void run_by(task_runner* by) { workers_.run_by(by); }

  // By name; in facts.hpp.
  static std::map<std::string, std::string> facts();

 private:
  cpu::workers<Scalar> workers_;
};

// Rows that a body reads, or writes, where workers say of what scalar.
template <class S>
using given = std::type_identity_t<view<const S>>;
template <class S>
using written = std::type_identity_t<view<S>>;

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
