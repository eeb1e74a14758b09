#include <streambp/core/arena.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace streambp;

namespace {

// The same layout, on nothing or on a block.
void lay_out(arena& from) {
  from.take<float>(3, 5);
  const std::size_t mark = from.used();
  from.take<double>(7, 9);
  from.rewind(mark);
  from.take<char>(1, 1);
  from.advance(mark + 640);
  from.take<std::int32_t>(0, 4);
  from.take<std::int32_t>(2, 8);
}

}  // namespace

TEST_CASE("arena: every region takes whole lines of 64 bytes") {
  arena nothing;
  nothing.take<float>(3, 5);
  CHECK(nothing.used() == 64);
  nothing.take<double>(8, 1);
  CHECK(nothing.used() == 128);
  nothing.take<double>(9, 1);
  CHECK(nothing.used() == 256);
  nothing.take<double>(0, 100);
  CHECK(nothing.used() == 256);
}

TEST_CASE("arena: regions after a rewind share addresses, and the high-water mark stays") {
  alignas(64) std::byte block[1024];
  arena from(block, sizeof block);
  from.take<std::byte>(1, 64);
  const std::size_t mark = from.used();
  const auto first = from.take<std::byte>(1, 512);
  from.rewind(mark);
  const auto second = from.take<std::byte>(1, 64);
  CHECK(first.data == second.data);
  CHECK(from.used() == 128);
  CHECK(from.high() == 576);
  from.advance(640);
  CHECK(from.take<std::byte>(1, 1).data == block + 640);
  CHECK(from.high() == 704);
}

TEST_CASE("arena: the bytes counted on nothing are the bytes taken") {
  arena nothing;
  lay_out(nothing);
  std::vector<std::byte> block(nothing.high() + 64);
  arena from(block.data(), nothing.high());
  lay_out(from);
  CHECK(from.high() == nothing.high());
  CHECK(from.used() == nothing.used());
  arena tight(block.data(), nothing.high() - 1);
  CHECK_THROWS_AS(lay_out(tight), std::bad_alloc);
}

TEST_CASE("arena: views have the shape asked for, on nothing no data") {
  arena nothing;
  const auto none = nothing.take<float>(3, 5);
  CHECK(none.data == nullptr);
  CHECK(none.rows == 3);
  CHECK(none.cols == 5);
  CHECK(none.stride == 5);
}

TEST_CASE("arena: what cannot be counted never becomes less again, and is never handed out") {
  const position large = position(1) << 40;
  arena nothing;
  nothing.take<double>(large, 1 << 20);
  nothing.take<double>(large, 1 << 21);
  CHECK(nothing.used() == uncountable);
  nothing.take<double>(large, 1);
  CHECK(nothing.used() == uncountable);
  CHECK(nothing.high() == uncountable);
  alignas(64) std::byte block[64];
  arena from(block, 64);
  CHECK_THROWS_AS(from.take<double>(large, large), std::bad_alloc);
}
