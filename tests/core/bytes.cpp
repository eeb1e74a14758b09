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
}
