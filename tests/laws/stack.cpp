#include <streambp/laws/stack.hpp>

#include <doctest/doctest.h>

namespace streambp::laws {
namespace {

template <std::size_t Bytes>
[[gnu::noinline]] int touch() {
  volatile unsigned char area[Bytes];
  for (std::size_t i = 0; i < Bytes; i += 64) area[i] = 1;
  return area[0];
}

TEST_CASE("stack: the depth of a call is seen to a frame") {
  CHECK(stack_of([] {}) < 2048);
  const std::size_t some = stack_of([] { touch<100'000>(); });
  CHECK(some >= 100'000);
  CHECK(some < 104'000);
  CHECK(stack_of([] { touch<2 * measured_stack>(); }) >= measured_stack);
}

}  // namespace
}  // namespace streambp::laws
