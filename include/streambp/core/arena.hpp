// One block of memory handed out from its start; regions that never live together share addresses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>

#include "bytes.hpp"
#include "view.hpp"

namespace streambp {

// Without a block it only counts: the same layout code first predicts the bytes, then takes them.
// What 64 bits cannot count stays uncountable.
class arena {
 public:
  arena() = default;
  arena(std::byte* base, std::size_t size) : base_(base), size_(size) {}

  // Uninitialised and 64-byte aligned. Throws std::bad_alloc past the end.
  template <class T>
  view<T> take(position rows, position cols) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ = sum_of_bytes(used_, bytes_of_rows(std::size_t(rows), std::size_t(cols), sizeof(T)));
    high_ = std::max(high_, used_);
    if (base_ && used_ > size_) throw std::bad_alloc();
    return {reinterpret_cast<T*>(at), rows, cols};
  }

  std::size_t used() const { return used_; }
  // What is taken from here on shares addresses with what was taken after used() was `mark`.
  void rewind(std::size_t mark) { used_ = mark; }
  // Continues behind everything taken so far.
  void advance(std::size_t mark) {
    used_ = mark;
    high_ = std::max(high_, mark);
  }
  std::size_t high() const { return high_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  std::size_t high_ = 0;
};

}  // namespace streambp
