#include <streambp/cpu/dropout.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

TEST_CASE_TEMPLATE("dropout: draws by place in the sample, replayed in any chunks", S, float,
                   double) {
  const packed samples({0, 1, 1, 14, 40});
  const std::vector<std::uint64_t> ids{9, 4, 7, 1};
  const dropout_draw draw{0.3, {.seed = 5, .step = 6, .instance = 8}, ids};
  device<S> single(1), pair(2);
  for (position d : widths) {
    const guarded<S> x(40, d, 1, 1, 2);
    guarded<S> y(40, d), chunked(40, d, 4);
    dropout(single, draw, piece_list(samples, {0, 40}), *x, *y);
    CHECK(y.intact());
    position dropped = 0;
    CHECK(error_of(*y, [&](position i, position j) {
            const position s = samples.segment_at(i);
            const random_key key{5, 6, ids[std::size_t(s)], 8};
            const bool keep = uniform(random_bits(key, i - samples.segment(s).first, j)) >= 0.3;
            dropped += !keep;
            return keep ? x(i, j) / 0.7 : 0;
          }) < tight<S>);
    if (d == 512) CHECK(std::abs(double(dropped) / (40 * 512) - 0.3) < 0.015);
    for (row_range own : {row_range{17, 40}, row_range{3, 17}, row_range{0, 3}})
      dropout(pair, draw, piece_list(samples, own, 3), (*x).rows_in(own), (*chunked).rows_in(own));
    CHECK(same_bits(y, chunked));

    // The backward is the same function, added.
    guarded<S> dx(40, d, 2, 1, 0);
    const guarded<S> before = dx;
    add_dropout(pair, draw, piece_list(samples, {0, 40}), *x, *dx);
    CHECK(error_of(*dx, [&](position i, position j) { return before(i, j) + y(i, j); }) == 0);
    CHECK(dx.intact());
  }
}

TEST_CASE_TEMPLATE("dropout: what is dropped is selected, not multiplied", S, float, double) {
  const packed samples = packed::one(20);
  const std::vector<std::uint64_t> ids{0};
  device<S> on(1);
  guarded<S> x(20, 33), y(20, 33);
  for (position i = 0; i < 20; ++i)
    for (position j = 0; j < 33; ++j) x(i, j) = std::numeric_limits<S>::quiet_NaN();
  dropout(on, {1, {}, ids}, piece_list(samples, {0, 20}), *x, *y);
  CHECK(error_of(*y, [](position, position) { return 0; }) == 0);
  const guarded<S> one(20, 33, 1, 0, 1);
  dropout(on, {0, {}, ids}, piece_list(samples, {0, 20}), *one, *y);
  CHECK(error_of(*y, [](position, position) { return 1; }) == 0);
}
