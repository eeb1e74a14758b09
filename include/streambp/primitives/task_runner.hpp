// Who runs the tasks of a loop in a device's place, one row a task: for tests of a layer's loops.
#pragma once

#include "../core/position.hpp"

namespace streambp {

class task_runner {
 public:
  // Calls call(task, i, thread) once for each i in [0, tasks).
  virtual void run(position tasks, void (*call)(const void*, position, int), const void* task) = 0;

 protected:
  ~task_runner() = default;
};

}  // namespace streambp
