// The C library's allocation functions, counted, and the counter's own test.
#include "allocations.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STREAMBP_FOREIGN_ALLOCATOR
#endif
#endif
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STREAMBP_FOREIGN_ALLOCATOR
#endif

namespace {

std::atomic<std::size_t> count{0};

}  // namespace

#ifdef STREAMBP_FOREIGN_ALLOCATOR

const bool streambp::allocations_are_counted = false;

#else

const bool streambp::allocations_are_counted = true;

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  ++count;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) noexcept {
  ++count;
  return __libc_calloc(n, bytes);
}
void* realloc(void* block, std::size_t bytes) noexcept {
  ++count;
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t to, std::size_t bytes) noexcept {
  ++count;
  return __libc_memalign(to, bytes);
}
void* aligned_alloc(std::size_t to, std::size_t bytes) noexcept {
  ++count;
  return __libc_memalign(to, bytes);
}
int posix_memalign(void** block, std::size_t to, std::size_t bytes) noexcept {
  ++count;
  *block = __libc_memalign(to, bytes);
  return *block ? 0 : ENOMEM;
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  ++count;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
}

#endif

std::size_t streambp::allocations() { return count; }

namespace {

void* volatile kept;  // the optimizer may not see that nobody wants it

// How many allocations f makes.
template <class F>
std::size_t counted(const F& f) {
  const std::size_t before = streambp::allocations();
  kept = f();
  return streambp::allocations() - before;
}

}  // namespace

TEST_CASE("allocations: each way to memory is seen, on every thread") {
  if (!streambp::allocations_are_counted) return;
  CHECK(counted([]() -> void* { return nullptr; }) == 0);
  CHECK(counted([]() -> void* { return new int(3); }) >= 1);
  CHECK(counted([]() -> void* { return new std::vector<int>(5); }) >= 2);
  CHECK(counted([]() -> void* { return ::operator new(256, std::align_val_t(64)); }) >= 1);
  CHECK(counted([]() -> void* { return std::malloc(100); }) >= 1);
  CHECK(counted([]() -> void* { return std::calloc(3, 100); }) >= 1);
  CHECK(counted([]() -> void* { return std::realloc(nullptr, 100); }) >= 1);
  CHECK(counted([]() -> void* { return std::aligned_alloc(64, 128); }) >= 1);
  CHECK(counted([]() -> void* {
          return ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }) >= 1);
  std::size_t elsewhere = 0;
  std::thread([&] { elsewhere = counted([]() -> void* { return std::malloc(100); }); }).join();
  CHECK(elsewhere >= 1);
}
