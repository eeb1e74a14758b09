#include <streambp/laws/count_allocations.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace streambp::laws {
namespace {

struct alignas(128) wide {
  char bytes[128];
};

template <class Ask>
bool counts(const Ask& ask) {
  const std::int64_t before = allocations;
  ask();
  return allocations > before;
}

TEST_CASE("whoever asks for memory is counted") {
  if (!counts_allocations()) return;  // a sanitizer has the allocator
  std::vector<double> v;
  std::unique_ptr<wide> aligned;
  CHECK(counts([&] { v.resize(1000); }));
  CHECK(counts([&] { aligned.reset(new wide); }));
  CHECK(counts([] { std::free(std::calloc(3, 5)); }));
  CHECK(counts([] { std::free(std::aligned_alloc(64, 128)); }));
  CHECK(counts([] {
    void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    ::munmap(page, 4096);
  }));
  bool elsewhere = false;
  std::thread([&] { elsewhere = counts([&] { v.resize(5000); }); }).join();
  CHECK(elsewhere);
  CHECK(!counts([&] { v[7] = 1; }));

  void* block = nullptr;
  const std::int64_t before = allocations;
  CHECK(posix_memalign(&block, 256, 1000) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
  std::free(block);
  CHECK(allocations == before + 1);
}

}  // namespace
}  // namespace streambp::laws
