// Counts malloc and its relatives (operator new calls them) and mmap: include it in a source file
// of the test program. With glibc; a sanitizer has allocators of its own, and nothing is counted
// then.
#pragma once

#include "allocations.hpp"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define STREAMBP_ALLOCATOR_IS_TAKEN
#endif
#endif
#ifndef STREAMBP_ALLOCATOR_IS_TAKEN

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#if __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // clang's declares posix_memalign in its own way, and must come first
#endif

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

// Weak: several source files may bring them, and a program's own come first.
[[gnu::weak]] void* malloc(std::size_t size) noexcept {
  ++streambp::laws::allocations;
  return __libc_malloc(size);
}
[[gnu::weak]] void* calloc(std::size_t n, std::size_t size) noexcept {
  ++streambp::laws::allocations;
  return __libc_calloc(n, size);
}
[[gnu::weak]] void* realloc(void* block, std::size_t size) noexcept {
  ++streambp::laws::allocations;
  return __libc_realloc(block, size);
}
[[gnu::weak]] void* memalign(std::size_t alignment, std::size_t size) noexcept {
  ++streambp::laws::allocations;
  return __libc_memalign(alignment, size);
}
[[gnu::weak]] void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++streambp::laws::allocations;
  return __libc_memalign(alignment, size);
}
[[gnu::weak]] int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  ++streambp::laws::allocations;
  *block = __libc_memalign(alignment, size);
  return *block || size == 0 ? 0 : ENOMEM;
}
[[gnu::weak]] void* mmap(void* at, std::size_t size, int protection, int flags, int file,
                         off_t offset) noexcept {
  ++streambp::laws::allocations;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
}

#endif
#endif
