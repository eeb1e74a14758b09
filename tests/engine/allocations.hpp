// How often this program has asked for memory: malloc and its kin, operator new, mmap, on any
// thread.
#pragma once

#include <cstddef>

namespace streambp {

// False under tools that bring an allocator of their own.
extern const bool allocations_are_counted;
std::size_t allocations();

}  // namespace streambp
