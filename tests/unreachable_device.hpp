// A device whose memory the host cannot touch: its pages have no access but while one of its
// primitives runs, and hold NaN when they are handed out. Its bodies are the CPU's.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <streambp/cpu/device.hpp>
#include <streambp/primitives/device.hpp>
#include <utility>
#include <vector>

namespace streambp::unreachable {

// All of the device's pages: one mapping, of huge pages where the system gives them, so that one
// call changes few entries when it opens or closes them.
class pages {
 public:
  static std::byte* take(std::size_t bytes) {
    auto& used = all().used_;
    std::size_t at = 0;  // the first gap that is wide enough
    auto next = used.begin();
    for (; next != used.end() && next->first < at + bytes; ++next) at = next->second;
    if (at + bytes > size) throw error("unreachable: no memory");
    used.insert(next, {at, at + bytes});
    const opened open;
    std::memset(all().start_ + at, 0xff, bytes);  // NaN
    return all().start_ + at;
  }
  static void give_back(std::byte* block) {
    std::erase_if(all().used_, [&](const auto& b) { return all().start_ + b.first == block; });
  }

  // While one lives, pages have access.
  class opened {
   public:
    opened() {
      if (all().open_++ == 0) allow(true);
    }
    opened(const opened&) = delete;
    opened& operator=(const opened&) = delete;
    ~opened() {
      if (--all().open_ == 0) allow(false);
    }
  };

 private:
  static constexpr std::size_t huge = std::size_t(1) << 21, size = 16 * huge;

  pages() {
    void* at = ::mmap(nullptr, size + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw error("unreachable: no address space");
    std::size_t room = size + huge;
    start_ = static_cast<std::byte*>(std::align(huge, size, at, room));
    ::madvise(start_, size, MADV_HUGEPAGE);
  }
  static pages& all() {
    static pages p;
    return p;
  }
  static void allow(bool access) {
    ::mprotect(all().start_, size, access ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::byte* start_ = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>> used_;  // [from, to), ascending
  int open_ = 0;
};

// A block of the device's; a host that reads or writes there ends with a segmentation fault.
class memory {
 public:
  memory() = default;
  explicit memory(std::size_t bytes)
      : data_(bytes == 0 ? nullptr : pages::take(whole_pages(bytes))), size_(bytes) {}
  memory(memory&& other) noexcept { *this = std::move(other); }
  memory& operator=(memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~memory() {
    if (data_) pages::give_back(data_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  static std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class Scalar>
class device : public primitives::counting<Scalar> {
 public:
  using memory = unreachable::memory;
  static constexpr bool is_host = false;

  device() = default;
  explicit device(int threads) : does_(threads) {}

  bool counts_only() const { return does_.counts_only(); }
  static constexpr std::size_t packing_bytes(int threads, position longest) {
    return cpu::device<Scalar>::packing_bytes(threads, longest);
  }
  void lend(std::byte* packing, position longest) { does_.lend(packing, longest); }

  // The pages are open while it lives.
  class running {
   public:
    explicit running(cpu::workers<Scalar>* workers) : workers_(workers) {}
    explicit operator bool() const { return workers_ != nullptr; }
    cpu::workers<Scalar>& operator*() const { return *workers_; }

   private:
    pages::opened open_;
    cpu::workers<Scalar>* workers_;
  };
  running enter(const char* name) { return running(does_.enter(name)); }

  static auto facts() { return cpu::device<Scalar>::facts(); }

 private:
  cpu::device<Scalar> does_;
};

// An array of the device's, written and read as a copy to and from it would be.
template <class Scalar>
class buffer {
 public:
  explicit buffer(std::size_t entries) : memory_(entries * sizeof(Scalar)) {}
  explicit buffer(std::span<const Scalar> of) : buffer(of.size()) {
    const pages::opened open;
    std::copy(of.begin(), of.end(), span().begin());
  }
  std::span<Scalar> span() const {
    return {reinterpret_cast<Scalar*>(memory_.data()), memory_.size() / sizeof(Scalar)};
  }
  std::vector<Scalar> copy() const {
    const pages::opened open;
    return {span().begin(), span().end()};
  }

 private:
  memory memory_;
};

}  // namespace streambp::unreachable
