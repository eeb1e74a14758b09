#include <streambp/core/bytes.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace streambp;

static_assert(3_KiB == 3072 && 2_MiB == 2097152 && 5_GiB == std::size_t(5) * 1024 * 1024 * 1024);

template <unsigned long long GiB>
concept counted = requires {
  typename std::integral_constant<std::size_t, shifted(GiB, 30)>;
};
static_assert(counted<(1ull << 34) - 1> && !counted<1ull << 34>);

TEST_CASE("bytes in words") {
  CHECK(bytes_in_words(0) == "0 B");
  CHECK(bytes_in_words(10239) == "10239 B");
  CHECK(bytes_in_words(10_KiB) == "10.0 KiB");
  CHECK(bytes_in_words(10_KiB + 52) == "10.1 KiB");
  CHECK(bytes_in_words(10_MiB) == "10.0 MiB");
  CHECK(bytes_in_words(183_MiB + 410_KiB) == "183.4 MiB");
  CHECK(bytes_in_words(10_GiB) == "10.00 GiB");
  CHECK(bytes_in_words(4000_GiB) == "4000.00 GiB");
  CHECK(bytes_in_words(123456_GiB) == "120.56 TiB");
}

TEST_CASE("bytes that 64 bits cannot count stay so") {
  static_assert(uncountable % 64 == 0 && uncountable > std::size_t(1) << 63);
  const std::size_t large = std::size_t(1) << 40;
  CHECK(sum_of_bytes(5, 7) == 12);
  CHECK(sum_of_bytes(uncountable - 8, 7) == uncountable - 1);
  CHECK(sum_of_bytes(uncountable - 8, 8) == uncountable);
  CHECK(sum_of_bytes(uncountable - 8, ~std::size_t(0)) == uncountable);
  CHECK(sum_of_bytes(uncountable, 1) == uncountable);
  CHECK(bytes_of_rows(0, 0, 8) == 0);
  CHECK(bytes_of_rows(3, 5, 4) == 64);
  CHECK(bytes_of_rows(3, 5, 8) == 128);
  CHECK(bytes_of_rows(large, 1 << 20, 8) == large << 23);
  CHECK(bytes_of_rows(large, 1 << 21, 8) == uncountable);
  CHECK(bytes_of_rows(large, large, 8) == uncountable);
  CHECK(bytes_of_rows(0, large, large) == uncountable);
}
