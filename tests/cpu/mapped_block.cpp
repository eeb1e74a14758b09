#include <streambp/cpu/mapped_block.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

using namespace streambp;
using cpu::mapped_block;

TEST_CASE("mapped_block: aligned, all of it usable, moved and not copied") {
  static_assert(!std::is_copy_constructible_v<mapped_block>);
  for (const std::size_t bytes : {std::size_t(1), std::size_t(4097), std::size_t(5) << 20}) {
    mapped_block block(bytes);
    CHECK(block.size() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % 64 == 0);
    std::memset(block.data(), 0x5a, bytes);
    std::byte* const at = block.data();
    mapped_block other = std::move(block);
    CHECK(other.data() == at);
    CHECK(other.data()[bytes - 1] == std::byte(0x5a));
    mapped_block third;
    third = std::move(other);
    CHECK(third.data() == at);
    CHECK(third.size() == bytes);
  }
  CHECK(mapped_block(0).data() == nullptr);
  for (const std::size_t bytes : {std::size_t(1) << 60, ~std::size_t(0)}) {
    std::string said;
    try {
      mapped_block too_large(bytes);
    } catch (const error& e) {
      said = e.what();
    }
    CHECK(said.starts_with(sentence("memory: ", bytes, " bytes (")));
    CHECK(said.find(") cannot be mapped: ") != std::string::npos);
    CHECK(said.find("; this machine has ") != std::string::npos);
    CHECK(said.ends_with(", so plan for a smaller budget"));
  }
  CHECK_THROWS_WITH_AS(mapped_block(~std::size_t(0)),
                       doctest::Contains("cannot be mapped: no address space has as many"), error);
  {}
}
