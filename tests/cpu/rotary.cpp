#include <streambp/cpu/rotary.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

std::vector<double> frequencies_of(const rotary_shape& shape) {
  std::vector<double> f;
  for (position pair = 0; pair < shape.rotated / 2; ++pair)
    f.push_back(rotary_frequency(shape, pair));
  return f;
}

constexpr rotary_shape shapes[] = {
    {1, 2, 2, 1e4},   {3, 8, 8, 1e4},         {2, 64, 64, 1e6},       {2, 80, 32, 1e4},
    {1, 40, 34, 5e5}, {4, 16, 16, 1e4, true}, {2, 72, 66, 1e4, true}, {1, 256, 256, 1e6}};

template <class S>
double naive(const rotary_shape& shape, const S* x, position at, position j) {
  const position h = j / shape.width, k = j % shape.width, half = shape.rotated / 2;
  if (k >= shape.rotated) return double(x[j]);
  const position pair = shape.interleaved ? k / 2 : k % half;
  const bool second = shape.interleaved ? k % 2 == 1 : k >= half;
  const S* head = x + h * shape.width;
  const double a = head[shape.interleaved ? 2 * pair : pair];
  const double b = head[shape.interleaved ? 2 * pair + 1 : pair + half];
  // The angle is a double by contract; from there on in long double.
  const long double angle = double(at) * rotary_frequency(shape, pair);
  return double(second ? a * std::sin(angle) + b * std::cos(angle)
                       : a * std::cos(angle) - b * std::sin(angle));
}

}  // namespace

TEST_CASE("circle is right to the last bits") {
  double worst = 0;
  for (int k = -200000; k <= 200000; ++k) {
    const double angle = k * 7.3138261;  // up to 1.5e6
    const circle_point point = circle(angle);
    double cosine[8], sine[8];
    store(cosine, whole<double>{}, point.cosine);
    store(sine, whole<double>{}, point.sine);
    worst = std::max({worst, double(std::abs(cosine[3] - std::cos((long double)(angle)))),
                      double(std::abs(sine[3] - std::sin((long double)(angle))))});
  }
  CHECK(worst < 2.5e-16);
}

TEST_CASE_TEMPLATE("rotary: values by position, prefix included, in chunks", S, float, double) {
  const packed samples({0, 1, 1, 14, 40});
  for (const rotary_shape& shape : shapes)
    for (position prefix : {0, 999000}) {
      const auto frequencies = frequencies_of(shape);
      const position d = shape.heads * shape.width;
      const guarded<S> x(40, d, 1, 1, 0);
      guarded<S> y = x, chunked(40, d, 1, 1., 0., 6);
      device<S> single(1), pair(2);
      rotate(single, shape, frequencies, piece_list(samples, {0, 40}, prefix), *y);
      CHECK(y.intact());
      CHECK(error_of(*y, [&](position i, position j) {
              const position start = samples.segment(samples.segment_at(i)).first;
              return naive(shape, (*x).row(i), prefix + i - start, j);
            }) < (sizeof(S) == 4 ? 1.5e-7 : 5e-16));
      for (row_range own : {row_range{17, 40}, row_range{3, 17}, row_range{0, 3}})
        rotate(pair, shape, frequencies, piece_list(samples, own, prefix), (*chunked).rows_in(own));
      CHECK(same_bits(y, chunked));
      rotate(single, shape, frequencies, piece_list(samples, {0, 40}, prefix), *y, true);
      CHECK(error_of(*y, [&](position i, position j) { return x(i, j); }) < tight<S>);
    }
}

TEST_CASE("rotary: turning back is the gradient") {
  // <dy, R x> = <Rᵀ dy, x>
  const rotary_shape shape{2, 24, 20, 1e4};
  const auto frequencies = frequencies_of(shape);
  const packed samples = packed::one(9);
  guarded<double> x(9, 48, 1, 1, 0), y = x, dy(9, 48, 2, 1, 0), dx = dy;
  device<double> on(1);
  rotate(on, shape, frequencies, piece_list(samples, {0, 9}), *y);
  rotate(on, shape, frequencies, piece_list(samples, {0, 9}), *dx, true);
  double left = 0, right = 0;
  for (position i = 0; i < 9; ++i)
    for (position j = 0; j < 48; ++j) left += dy(i, j) * y(i, j), right += dx(i, j) * x(i, j);
  CHECK(std::abs(left - right) < 1e-12);
}
