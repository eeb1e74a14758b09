// Counts the live bytes of the malloc family, and their peak, to the byte. For LD_PRELOAD, with
// glibc. A program that finds the peak_counter_ functions by dlsym reads it.
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static _Atomic long live, peak;

long peak_counter_live(void) { return live; }
long peak_counter_peak(void) { return peak; }
void peak_counter_reset(void) { peak = (long)live; }

static long size_of(void* p) { return p ? (long)malloc_usable_size(p) : 0; }

static void* counted(void* p) {
  const long bytes = size_of(p), now = atomic_fetch_add(&live, bytes) + bytes;
  long highest = peak;
  while (now > highest && !atomic_compare_exchange_weak(&peak, &highest, now)) {
  }
  return p;
}

void* malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* memalign(size_t alignment, size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* p = memalign(alignment, bytes);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}

void* realloc(void* p, size_t bytes) {
  const long before = size_of(p);
  void* moved = __libc_realloc(p, bytes);
  if (!moved && bytes) return moved;  // p is still there
  atomic_fetch_sub(&live, before);
  return counted(moved);
}

void free(void* p) {
  atomic_fetch_sub(&live, size_of(p));
  __libc_free(p);
}
