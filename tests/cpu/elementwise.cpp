#include <streambp/cpu/elementwise.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

template <class S, class Right>
void check_each(guarded<S>& y, const Right& right) {
  CHECK(y.intact());
  bool equal = true;
  for (position i = 0; i < (*y).rows; ++i)
    for (position j = 0; j < (*y).cols; ++j) equal = equal && y(i, j) == right(i, j);
  CHECK(equal);
}

TEST_CASE_TEMPLATE("copies, sums and scalings of rows", S, float, double) {
  for (int threads : {1, 2}) {
    device<S> on(threads);
    for (position d : widths) {
      const guarded<S> a(37, d, 1, 1, 0), b(37, d, 2, 1, 0, 2), bias(1, d, 3, 1, 0);
      guarded<S> y(37, d);
      copy(on, *a, *y);
      check_each(y, [&](position i, position j) { return a(i, j); });
      add(on, *b, *y);
      check_each(y, [&](position i, position j) { return a(i, j) + b(i, j); });
      sum(on, *a, *b, *y);
      check_each(y, [&](position i, position j) { return a(i, j) + b(i, j); });
      copy(on, *a, *y);
      add_bias(on, *bias, *y);
      check_each(y, [&](position i, position j) { return a(i, j) + bias(0, j); });
      copy(on, *a, *y);
      scale(on, 0.3, *y);
      check_each(y, [&](position i, position j) { return S(0.3) * a(i, j); });
      copy(on, *a, *y);
      shift(on, -0.7, *y);
      check_each(y, [&](position i, position j) { return a(i, j) + S(-0.7); });
      fill(on, S(2.5), *y);
      check_each(y, [&](position, position) { return S(2.5); });
      zero(on, *y);
      check_each(y, [&](position, position) { return S(0); });
    }
  }
}

TEST_CASE_TEMPLATE("column sums", S, float, double) {
  const std::vector<position> all{100, 108, 137}, last{108, 137}, first{100, 108};
  for (position d : widths) {
    const guarded<S> dy(37, d, 1, 1, 0);
    device<S> single(1), pair(2);
    guarded<S> db(1, d, 2, 1, 0), chunked = db;
    const guarded<S> before = db;
    add_column_sums(single, *dy, *db, all);
    CHECK(db.intact());
    CHECK(error_of(*db, [&](position, position j) {
            double total = before(0, j);
            for (position i = 0; i < 37; ++i) total += dy(i, j);
            return total;
          }) < tight<S>);
    add_column_sums(pair, (*dy).middle_rows(8, 29), *chunked, last);
    add_column_sums(pair, (*dy).middle_rows(0, 8), *chunked, first);
    CHECK(same_bits(db, chunked));
  }
}

TEST_CASE("a device that counts only touches nothing") {
  device<float> on;
  view<float> shape(nullptr, 5, 7);
  zero(on, shape);
  add(on, shape, shape);
  fill(on, 1.f, shape);
  shift(on, 1, shape);
  const view<float> row(nullptr, 1, 7);
  const position grains[] = {0, 5};
  add_bias(on, row, shape);
  add_column_sums(on, shape, row, grains);
  CHECK(on.flops() == 0);
}
