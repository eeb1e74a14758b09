// A device whose memory the host cannot touch: its pages have no access but while one of its
// primitives runs, and hold NaN when they are handed out. Its bodies are the CPU's.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <streambp/cpu/device.hpp>
#include <streambp/primitives/device.hpp>
#include <utility>
#include <vector>

namespace streambp::unreachable {

// A block of the device's; a host that reads or writes there ends with a segmentation fault.
class memory {
 public:
  memory() = default;
  explicit memory(std::size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
    mapped_ = (bytes + page - 1) / page * page;
    void* const at =
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw error("unreachable: no memory");
    data_ = static_cast<std::byte*>(at);
    std::memset(data_, 0xff, mapped_);  // NaN
    blocks().push_back({data_, mapped_});
    allow(depth() > 0);
  }
  memory(memory&& other) noexcept { swap(other); }
  memory& operator=(memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~memory() {
    if (data_ == nullptr) return;
    std::erase_if(blocks(), [&](const auto& b) { return b.first == data_; });
    ::munmap(data_, mapped_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // While one lives, pages have access.
  class opened {
   public:
    opened() {
      if (depth()++ == 0) allow(true);
    }
    opened(const opened&) = delete;
    opened& operator=(const opened&) = delete;
    ~opened() {
      if (--depth() == 0) allow(false);
    }
  };

 private:
  static std::vector<std::pair<std::byte*, std::size_t>>& blocks() {
    static std::vector<std::pair<std::byte*, std::size_t>> all;
    return all;
  }
  static int& depth() {
    static int open = 0;
    return open;
  }
  static void allow(bool access) {
    for (const auto& [at, bytes] : blocks())
      ::mprotect(at, bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  void swap(memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

template <class Scalar>
class device : public primitives::counting<Scalar> {
 public:
  using memory = unreachable::memory;
  static constexpr bool is_host = false;

  device() = default;
  explicit device(int threads) : does_(threads) {}

  bool counts_only() const { return does_.counts_only(); }
  static constexpr std::size_t packing_bytes(int threads) {
    return cpu::device<Scalar>::packing_bytes(threads);
  }
  void lend(std::byte* packing) { does_.lend(packing); }

  // The pages are open while it lives.
  class running {
   public:
    explicit running(cpu::workers<Scalar>* workers) : workers_(workers) {}
    explicit operator bool() const { return workers_ != nullptr; }
    cpu::workers<Scalar>& operator*() const { return *workers_; }

   private:
    memory::opened pages_;
    cpu::workers<Scalar>* workers_;
  };
  running enter(const char* name) { return running(does_.enter(name)); }

 private:
  cpu::device<Scalar> does_;
};

// An array of the device's, written and read as a copy to and from it would be.
template <class Scalar>
class buffer {
 public:
  explicit buffer(std::size_t entries) : memory_(entries * sizeof(Scalar)) {}
  explicit buffer(std::span<const Scalar> of) : buffer(of.size()) {
    const memory::opened open;
    std::copy(of.begin(), of.end(), span().begin());
  }
  std::span<Scalar> span() const {
    return {reinterpret_cast<Scalar*>(memory_.data()), memory_.size() / sizeof(Scalar)};
  }
  std::vector<Scalar> copy() const {
    const memory::opened open;
    return {span().begin(), span().end()};
  }

 private:
  memory memory_;
};

}  // namespace streambp::unreachable
