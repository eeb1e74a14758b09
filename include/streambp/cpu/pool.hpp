// A fixed set of threads that share out numbered tasks; after construction it allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/position.hpp"
#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

// Which thread computes a task is chance; what a task computes must not depend on it.
class pool {
 public:
  // Throws error when the system has fewer threads.
  explicit pool(int threads) {
    try {
      for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
    } catch (const std::system_error& e) {
      const int started = this->threads();
      end();
      throw error(
          sentence("only ", started, " of ", threads, " threads could be started: ", e.what()));
    }
  }
  ~pool() { end(); }

  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  int threads() const { return int(workers_.size()) + 1; }

  // Calls task(i, thread) once for each i in [0, tasks) and returns when all are done, also if some
  // threads slept through it. Requires tasks < 2^32. What a task throws arrives at the caller once
  // no task runs any more: of several that throw, the lowest one's; those above it may be left out.
  // Throws error when a task calls run. One caller at a time.
  template <class Task>
  void run(position tasks, const Task& task) {
    if (working_for_ == this)
      throw error(
          "a task that is shared out to threads may not share out tasks of its own: call the "
          "primitive, or for_rows, outside of the loop");
    const at_work here(this);
    if (workers_.empty() || tasks < 2) {
      for (position i = 0; i < tasks; ++i) task(i, 0);
      return;
    }
    call_.store([](const void* f, position i, int t) { (*static_cast<const Task*>(f))(i, t); },
                std::memory_order_relaxed);
    task_.store(&task, std::memory_order_relaxed);
    tasks_.store(tasks, std::memory_order_relaxed);
    left_.store(std::uint32_t(tasks), std::memory_order_relaxed);
    const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    open_.store(std::uint64_t(round) << 32 | std::uint32_t(tasks), std::memory_order_release);
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    take(0);
    for (std::uint32_t left; (left = left_.load(std::memory_order_acquire)) != 0;)
      wait_while(left_, left);
    if (failed_.load(std::memory_order_relaxed) != none) {
      failed_.store(none, std::memory_order_relaxed);
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
  }

 private:
  using function = void (*)(const void*, position, int);
  static constexpr position none = std::numeric_limits<position>::max();

  // Says, while it lives, whose tasks this thread works on.
  class at_work {
   public:
    explicit at_work(const pool* p) : before_(std::exchange(working_for_, p)) {}
    ~at_work() { working_for_ = before_; }
    at_work(const at_work&) = delete;
    at_work& operator=(const at_work&) = delete;

   private:
    const pool* before_;
  };

  void end() {
    stop_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  // The round and its tasks not yet taken are one word. A thread that wakes up late takes nothing:
  // it finds none left, or its exchange fails; and what it read of a round holds while a task is
  // left.
  void take(int thread) {
    for (std::uint64_t open = open_.load(std::memory_order_acquire); std::uint32_t(open) != 0;) {
      const function call = call_.load(std::memory_order_relaxed);
      const void* task = task_.load(std::memory_order_relaxed);
      const position i = tasks_.load(std::memory_order_relaxed) - std::uint32_t(open);
      if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
      // Tasks are taken in ascending order: all below one that failed have been taken.
      if (i < failed_.load(std::memory_order_relaxed)) try {
          call(task, i, thread);
        } catch (...) {
          note_failure(i);
        }
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
      open = open_.load(std::memory_order_acquire);
    }
  }

  void note_failure(position task) {
    const std::lock_guard<std::mutex> one_at_a_time(noting_);
    if (task > failed_.load(std::memory_order_relaxed)) return;
    failure_ = std::current_exception();
    failed_.store(task, std::memory_order_relaxed);
  }

  void work(int thread) {
    const at_work here(this);
    for (std::uint32_t seen = 0;;) {
      wait_while(round_, seen);
      seen = round_.load(std::memory_order_acquire);
      if (stop_) return;
      take(thread);
    }
  }

  // Returns soon after `value` has become another. Sleeping and waking take tens of microseconds,
  // as long as the tasks between two waits often do; so it looks for about as long first.
  static void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
    for (int look = 0; look < 1000; ++look) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
    value.wait(old, std::memory_order_acquire);
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<function> call_{nullptr};
  std::atomic<const void*> task_{nullptr};
  std::atomic<position> tasks_{0};
  std::atomic<std::uint32_t> left_{0};  // tasks not yet done
  std::atomic<std::uint64_t> open_{0};  // round; tasks not yet taken
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> stop_{false};
  std::atomic<position> failed_{none};  // the lowest task that threw
  std::exception_ptr failure_;          // what it threw
  std::mutex noting_;
  static inline constinit thread_local const pool* working_for_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
