#include <streambp/cpu/expression.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;
using autodiff::expression_term;
using autodiff::operation;
using autodiff::unary;

namespace {

constexpr position rows = 13;

template <class S>
expression_term<S> leaf(view<S> value, view<S> gradient, position cols) {
  return {.op = operation::input,
          .leaf = true,
          .reached = true,
          .value = value.data,
          .stride = value.rows == 1 ? 0 : value.stride,
          .wide = value.cols == cols,
          .gradient = gradient.data,
          .gradient_stride = gradient.stride};
}

// tanh(a ∘ b) + c: a (rows, cols), b (1, cols), c (rows, 1).
template <class S>
struct example {
  position cols, skew;
  guarded<S> a{rows, cols, 1, 1., 0., skew}, b{1, cols, 2, 1., 0., skew},
      c{rows, 1, 3, 1., 0., skew}, dy{rows, cols, 4, 1., 0., skew}, y{rows, cols, skew},
      da{rows, cols, 5, 1., 0., skew}, db{rows, cols, 6, 1., 0., skew},
      dc{rows, 1, 7, 1., 0., skew};

  std::vector<expression_term<S>> terms() {
    std::vector<expression_term<S>> t{leaf<S>(*a, *da, cols), leaf<S>(*b, *db, cols),
                                      leaf<S>(*c, *dc, cols)};
    t.push_back({.op = operation::multiply, .a = 0, .b = 1, .reached = true});
    t.push_back({.op = operation::unary, .function = unary::tanh, .a = 3, .reached = true});
    t.push_back({.op = operation::add, .a = 4, .b = 2, .reached = true});
    return t;
  }
  void run(int threads, const std::vector<position>& cuts) {
    device<S> on(threads);
    const auto t = terms();
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      evaluate(on, t, *y, {cuts[i], cuts[i + 1]});
      differentiate(on, t, cols, *dy, {cuts[i], cuts[i + 1]});
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("expressions: values, gradients, and their bits in any rows, places and threads",
                   S, float, double) {
  for (const position cols : {1, 3, 15, 16, 17, 127, 128, 129, 300}) {
    CAPTURE(cols);
    example<S> once{cols, 1}, again{cols, 4};
    const example<S> before{cols, 1};
    once.run(1, {0, rows});
    again.run(2, {0, 1, 6, rows});
    CHECK(error_of(*once.y, [&](position i, position j) {
            return std::tanh(double(once.a(i, j)) * double(once.b(0, j))) + double(once.c(i, 0));
          }) < 4 * tight<S>);
    const auto slope_at = [&](position i, position j) {
      const double t = std::tanh(double(once.a(i, j)) * double(once.b(0, j)));
      return double(once.dy(i, j)) * (1 - t * t);
    };
    CHECK(error_of(*once.da, [&](position i, position j) {
            return before.da(i, j) + slope_at(i, j) * double(once.b(0, j));
          }) < 8 * tight<S>);
    CHECK(error_of(*once.dc, [&](position i, position) {
            double sum = before.dc(i, 0);
            for (position j = 0; j < cols; ++j) sum += double(once.dy(i, j));
            return sum;
          }) < 20 * tight<S>);
    CHECK(same_bits(once.y, again.y));
    CHECK(same_bits(once.da, again.da));
    CHECK(same_bits(once.dc, again.dc));
    CHECK(again.y.intact());
    CHECK(again.da.intact());
    CHECK(again.dc.intact());
  }
}

TEST_CASE_TEMPLATE("expressions: sums and largest entries of rows", S, float, double) {
  for (const position cols : {1, 3, 16, 17, 129, 300}) {
    CAPTURE(cols);
    example<S> of{cols, 1};
    const auto t = of.terms();
    guarded<S> sums(rows, 1), tops(rows, 1), lengths(rows, 1);
    device<S> on(1);
    evaluate(on, t, *of.y, {0, rows});
    evaluate_sum(on, t, cols, *sums, {0, rows});
    evaluate_max(on, t, cols, *tops, {0, rows});
    evaluate_rms(on, t, cols, 0.5, *lengths, {0, rows});
    for (position i = 0; i < rows; ++i) {
      CHECK(tops(i, 0) == *std::max_element((*of.y).row(i), (*of.y).row(i) + cols));
      double sum = 0, squares = 0;
      for (position j = 0; j < cols; ++j) sum += double(of.y(i, j));
      for (position j = 0; j < cols; ++j) squares += double(of.y(i, j)) * double(of.y(i, j));
      CHECK(std::abs(double(sums(i, 0)) - sum) < double(cols) * tight<S>);
      CHECK(std::abs(double(lengths(i, 0)) - std::sqrt(squares / double(cols) + 0.5)) <
            10 * tight<S>);
    }
  }
}

// Also in the place of its rows, in blocks that are whole and that are not.
TEST_CASE_TEMPLATE("expressions: the gradient of a root mean square", S, float, double) {
  for (const position cols : {1, 17, 129, 300})
    for (const S size : {S(1), std::numeric_limits<S>::max() / 1000}) {
      CAPTURE(cols);
      CAPTURE(size);
      guarded<S> x(1, cols, 3, 1., 0.), rms(1, 1), drms(1, 1, 2, 1., 0.);
      for (position j = 0; j < cols; ++j) x(0, j) *= size;
      const guarded<S> was = x;
      device<S> on(1);
      std::vector<expression_term<S>> t{leaf<S>(*x, *x, cols)};
      t[0].assigns = true;
      evaluate_rms(on, t, cols, 1e-6, *rms, {0, 1});
      differentiate_rms(on, t, cols, *rms, *drms, {0, 1});
      for (position j = 0; j < cols; ++j)
        CHECK(std::abs(double(x(0, j)) - double(drms(0, 0)) * (double(was(0, j)) / double(cols)) /
                                             double(rms(0, 0))) < 10 * tight<S>);
      CHECK(x.intact());
    }
}

TEST_CASE("expressions: of equal largest entries the first one gets the gradient") {
  guarded<double> x(1, 300), dx(1, 300), top(1, 1), dtop(1, 1, 2, 1., 0.);
  for (position j = 0; j < 300; ++j) x(0, j) = j == 170 || j == 20 + 200 ? 2 : 1, dx(0, j) = 0;
  device<double> on(1);
  std::vector<expression_term<double>> t{leaf<double>(*x, *dx, 300)};
  evaluate_max(on, t, 300, *top, {0, 1});
  differentiate_max(on, t, 300, *top, *dtop, {0, 1});
  for (position j = 0; j < 300; ++j) CHECK(dx(0, j) == (j == 170 ? dtop(0, 0) : 0));
}

TEST_CASE("expressions: a gradient may take the place of its rows, or of dy") {
  example<double> apart{70, 1}, rows_taken{70, 1}, dy_taken{70, 1};
  device<double> on(1);
  const auto differentiated = [&](example<double>& e, view<double> into) {
    auto t = e.terms();
    t[0].gradient = into.data, t[0].gradient_stride = into.stride, t[0].assigns = true;
    differentiate(on, t, e.cols, *e.dy, {0, rows});
  };
  differentiated(apart, *apart.da);
  differentiated(rows_taken, *rows_taken.a);
  differentiated(dy_taken, *dy_taken.dy);
  CHECK(same_bits(apart.da, rows_taken.a));
  CHECK(same_bits(apart.da, dy_taken.dy));
}
