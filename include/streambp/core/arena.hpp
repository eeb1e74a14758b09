// One block of memory handed out from its start; regions that never live together share addresses.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>

#include "bytes.hpp"
#include "error.hpp"
#include "view.hpp"

namespace streambp {

// Without a block it only counts: the same layout code first predicts the bytes, then takes them.
class arena {
 public:
  arena() = default;
  arena(std::byte* base, std::size_t size) : base_(base), size_(size) {}

  // Uninitialised and 64-byte aligned. Throws std::bad_alloc past the end.
  template <class T>
  view<T> take(position rows, position cols) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += (std::size_t(rows) * std::size_t(cols) * sizeof(T) + 63) / 64 * 64;
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

// The arena's block: mapped once, on huge pages where the system has them, owned.
class mapped_block {
 public:
  mapped_block() = default;
  // Throws error when the system has no `bytes` left.
  explicit mapped_block(std::size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    if (bytes > std::numeric_limits<std::size_t>::max() / 2)
      refuse(bytes, "no address space has as many");
    mapped_ = (bytes + huge_page - 1) / huge_page * huge_page + huge_page;
    start_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_ == MAP_FAILED) refuse(bytes, std::strerror(errno));
    const auto address = reinterpret_cast<std::size_t>(start_);
    data_ = static_cast<std::byte*>(start_) +
            ((address + huge_page - 1) / huge_page * huge_page - address);
    ::madvise(data_, mapped_ - huge_page, MADV_HUGEPAGE);
  }
  mapped_block(mapped_block&& other) noexcept { swap(other); }
  mapped_block& operator=(mapped_block&& other) noexcept {
    swap(other);
    return *this;
  }
  ~mapped_block() {
    if (data_) ::munmap(start_, mapped_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  [[noreturn]] static void refuse(std::size_t bytes, const char* why) {
    const double machine = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
    throw error(sentence("arena: ", bytes, " bytes (", bytes_in_words(bytes),
                         ") cannot be mapped: ", why, "; this machine has ",
                         bytes_in_words(std::size_t(machine)), ", so plan for a smaller budget"));
  }
  static constexpr std::size_t huge_page = std::size_t(2) << 20;
  void swap(mapped_block& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  void* start_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace streambp
