#include <streambp/laws/outcome.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace streambp::laws {
namespace {

const packed samples({0, 2, 5});
const auto any = [](position) { return true; };

tensor y() { return {"y", tensor_kind::output, 2, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}; }

TEST_CASE("a place is named by token and sample, or by row and column") {
  CHECK(place_of(y(), 7, samples) == "y of token 3 (sample 1, position 1), column 1");
  CHECK(place_of({"gradient of w", tensor_kind::parameter, 3, 0, {}}, 7, samples) ==
        "gradient of w, row 2, column 1");
}

TEST_CASE("other bits are found, where they matter") {
  tensor b = y();
  CHECK(other_bits(y(), b, samples, any).empty());
  b.data[5] = std::nextafter(5.0, 6.0);
  CHECK(
      other_bits(y(), b, samples, any).find("y of token 2 (sample 1, position 0), column 1 is ") ==
      0);
  CHECK(other_bits(y(), b, samples, [](position row) { return row != 2; }).empty());
  b.data[5] = 5;
  b.data[0] = -0.0;
  CHECK(!other_bits(y(), b, samples, any).empty());
  CHECK(other_bits(outcome{1, {y()}}, outcome{1.5, {y()}}, samples) ==
        "the value is 1.5, not 1 (difference 0.5)");
  CHECK(!other_bits(outcome{1, {y()}}, outcome{1, {b}}, samples).empty());
}

TEST_CASE("differences are relative to the largest entry, and NaN is one") {
  tensor b = y();
  b.data[1] += 0.09;
  CHECK(beyond(y(), b, 0.0101, 0, samples).empty());
  CHECK(!beyond(y(), b, 0.0099, 0, samples).empty());
  CHECK(beyond(y(), b, 0.0099, 20, samples).empty());
  b.data[1] = std::numeric_limits<double>::quiet_NaN();
  CHECK(!beyond(y(), b, 1e9, 0, samples).empty());
  CHECK(same_bits(b.data[1], -b.data[1]));
}

TEST_CASE("the largest gradient is that of no result") {
  const tensor g{"gradient of w", tensor_kind::parameter, 1, 0, {1, -3}};
  CHECK(outcome{0, {y(), g}}.largest_gradient() == 3);
}

}  // namespace
}  // namespace streambp::laws
