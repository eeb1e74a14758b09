#include <streambp/core/view.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

using namespace streambp;

static_assert(std::is_convertible_v<view<float>, view<const float>>);
static_assert(!std::is_convertible_v<view<const float>, view<float>>);

TEST_CASE("view: rows and columns of a view are views of the same entries") {
  std::vector<int> entries(30);
  for (int i = 0; i < 30; ++i) entries[std::size_t(i)] = i;
  const view<int> all(entries.data(), 5, 6);
  CHECK(all(2, 3) == 15);
  const view<int> part = all.middle_rows(1, 3).middle_cols(2, 4);
  CHECK(part.rows == 3);
  CHECK(part.cols == 4);
  CHECK(part.stride == 6);
  for (position i = 0; i < 3; ++i)
    for (position j = 0; j < 4; ++j) CHECK(part(i, j) == all(i + 1, j + 2));
  CHECK(all.rows_in({2, 5}).data == all.row(2));
  CHECK(all.rows_in({2, 5}).rows == 3);
  part(2, 3) = -1;
  CHECK(all(3, 5) == -1);
}

TEST_CASE("view: one without data has a shape only, and so have its parts") {
  const view<float> shape(nullptr, 10, 4);
  CHECK(shape.middle_rows(3, 2).data == nullptr);
  CHECK(shape.middle_cols(1, 2).data == nullptr);
  CHECK(shape.middle_rows(3, 2).rows == 2);
}

TEST_CASE("view: offsets past 2^31 entries") {
  const view<char> shape(reinterpret_cast<char*>(64), 1 << 20, 1 << 20);
  CHECK(shape.row(1 << 19) - shape.row(0) == position(1) << 39);
}
