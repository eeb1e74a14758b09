// How often memory was asked for, by any thread, if count_allocations.hpp is part of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "../core/language.hpp"

namespace streambp::laws {

inline std::atomic<std::int64_t> allocations{0};

inline bool counts_allocations() {
  void* (*volatile ask)(std::size_t) = std::malloc;  // one that the compiler cannot leave out
  const std::int64_t before = allocations;
  std::free(ask(1));
  return allocations > before;
}

}  // namespace streambp::laws
