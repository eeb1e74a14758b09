// A block of memory: mapped once, on huge pages where the system has them, owned.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "../core/bytes.hpp"
#include "../core/error.hpp"
#include "isa.hpp"

namespace streambp::cpu {
inline namespace STREAMBP_ISA {

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
    throw error(sentence("memory: ", bytes, " bytes (", bytes_in_words(bytes),
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

}  // namespace STREAMBP_ISA
}  // namespace streambp::cpu
