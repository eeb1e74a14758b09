// The tasks of a loop one after another, in an order of choice, as two threads might share them
// out; and which of them write to one place.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/view.hpp"
#include "../primitives/task_runner.hpp"

namespace streambp::laws {

// No luck is needed: what depends on the order shows in the bits of another order; what two tasks
// of different threads both write is found by comparing after each task.
class ordered_tasks final : public task_runner {
 public:
  enum class order : unsigned char { ascending, descending, odd_first };

  explicit ordered_tasks(order o) : order_(o) {}

  // Places that a call may write to.
  template <class Scalar>
  void look_at(view<Scalar> rows) {
    for (position i = 0; i < rows.rows && rows.data; ++i)
      spans_.push_back({reinterpret_cast<const std::byte*>(rows.row(i)), sizeof(Scalar),
                        std::size_t(rows.cols)});
  }
  void look_away() { spans_.clear(); }

  void run(position tasks, void (*call)(const void*, position, int), const void* task) override {
    for (span& s : spans_) {
      s.before.assign(s.data, s.data + s.bytes());
      s.writer.assign(s.count, -1);
    }
    for (position k = 0; k < tasks; ++k) {
      const position i = number(k, tasks);
      call(task, i, thread(i));
      if (tasks > 1) note_writes(i);
    }
  }

  // Empty: no two.
  const std::string& race() const { return race_; }

 private:
  struct span {
    const std::byte* data;
    std::size_t width, count;
    std::vector<std::byte> before{};
    std::vector<position> writer{};  // the task that wrote last; -1: none

    std::size_t bytes() const { return width * count; }
  };

  position number(position k, position tasks) const {
    if (order_ == order::descending) return tasks - 1 - k;
    if (order_ == order::odd_first) return k < tasks / 2 ? 2 * k + 1 : 2 * (k - tasks / 2);
    return k;
  }
  int thread(position i) const { return int((order_ == order::descending ? i / 2 : i) % 2); }

  void note_writes(position task) {
    for (span& s : spans_) {
      if (std::memcmp(s.data, s.before.data(), s.bytes()) == 0) continue;
      for (std::size_t e = 0; e < s.count; ++e) {
        const std::size_t at = e * s.width;
        if (std::memcmp(s.data + at, s.before.data() + at, s.width) == 0) continue;
        if (s.writer[e] >= 0 && thread(s.writer[e]) != thread(task) && race_.empty())
          race_ = sentence("tasks ", s.writer[e], " and ", task,
                           " of one loop write to the same entry, column ", e,
                           " of its row; two threads may do so at once");
        s.writer[e] = task;
      }
      s.before.assign(s.data, s.data + s.bytes());
    }
  }

  order order_;
  std::vector<span> spans_;
  std::string race_;
};

}  // namespace streambp::laws
