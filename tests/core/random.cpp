#include <streambp/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

using namespace streambp;

static_assert(random_bits({1, 2, 3, 4}, 5, 6) == random_bits(random_row({1, 2, 3, 4}, 5), 6));
static_assert(uniform(0) == 0 && uniform(~std::uint64_t(0)) < 1);

TEST_CASE("every part of the key, and its order, matters") {
  const std::uint64_t base = random_bits({1, 2, 3, 4}, 5, 6);
  CHECK(base != random_bits({2, 2, 3, 4}, 5, 6));
  CHECK(base != random_bits({1, 3, 3, 4}, 5, 6));
  CHECK(base != random_bits({1, 2, 4, 4}, 5, 6));
  CHECK(base != random_bits({1, 2, 3, 5}, 5, 6));
  CHECK(base != random_bits({1, 2, 3, 4}, 6, 6));
  CHECK(base != random_bits({1, 2, 3, 4}, 5, 7));
  CHECK(base != random_bits({2, 1, 3, 4}, 5, 6));
  CHECK(base != random_bits({1, 3, 2, 4}, 5, 6));
  CHECK(base != random_bits({1, 2, 4, 3}, 5, 6));
  CHECK(base != random_bits({1, 2, 3, 4}, 6, 5));
}

TEST_CASE("one flipped input bit flips half of the output's") {
  const auto with = [](int input, std::uint64_t value) {
    std::uint64_t in[6] = {17, 3, 12, 5, 1000, 77};
    in[input] ^= value;
    return random_bits({in[0], in[1], in[2], in[3]}, position(in[4]), position(in[5]));
  };
  for (int input = 0; input < 6; ++input) {
    double flipped = 0;
    for (int bit = 0; bit < 63; ++bit) {
      const int count = std::popcount(with(input, 0) ^ with(input, std::uint64_t(1) << bit));
      flipped += count;
      CHECK(count > 12);
      CHECK(count < 52);
    }
    CHECK(std::abs(flipped / 63 - 32) < 2.5);
  }
}

TEST_CASE("each output bit flips half of the time, for each input bit") {
  const int samples = 4000;
  for (int bit = 0; bit < 64; ++bit) {
    std::vector<int> flips(64, 0);
    for (int k = 0; k < samples; ++k) {
      const std::uint64_t x = std::uint64_t(k);
      const std::uint64_t change = mixed(x) ^ mixed(x ^ std::uint64_t(1) << bit);
      for (int out = 0; out < 64; ++out) flips[std::size_t(out)] += int(change >> out & 1);
    }
    double worst = 0;
    for (int count : flips) worst = std::max(worst, std::abs(double(count) / samples - 0.5));
    CHECK(worst < 0.05);
  }
}

TEST_CASE("uniform draws: mean, variance, buckets, neighbours") {
  const int rows = 1000, columns = 200, n = rows * columns;
  double mean = 0, square = 0, beside = 0, below = 0;
  std::vector<int> bucket(64, 0);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const auto draw = [&](int row, int column) {
        return uniform(random_bits({42, 0, 0, 1}, row, column)) - 0.5;
      };
      const double u = draw(i, j);
      mean += u / n;
      square += u * u / n;
      beside += u * draw(i, j + 1) / n;
      below += u * draw(i + 1, j) / n;
      ++bucket[std::size_t((u + 0.5) * 64)];
    }
  const double deviations = std::sqrt(1. / n);
  CHECK(std::abs(mean) < 4 * deviations * std::sqrt(1 / 12.));
  CHECK(std::abs(square - 1 / 12.) < 4 * deviations * std::sqrt(1 / 180.));
  CHECK(std::abs(beside) < 4 * deviations / 12);
  CHECK(std::abs(below) < 4 * deviations / 12);
  double chi = 0;
  for (int count : bucket) chi += (count - n / 64.) * (count - n / 64.) / (n / 64.);
  CHECK(chi < 63 + 4 * std::sqrt(126.));
  CHECK(chi > 63 - 4 * std::sqrt(126.));
}
