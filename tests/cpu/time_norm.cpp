#include <streambp/cpu/time_norm.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

const packed samples({0, 9, 10, 10, 37});
constexpr position rows = 37, tile = 8;
constexpr double epsilon = 1e-5;
// Every tile of every segment, and runs of them.
const std::vector<std::vector<position>> cuts{
    {0, 37}, {0, 8, 9, 10, 18, 26, 34, 37}, {0, 9, 26, 37}, {0, 10, 34, 37}};

template <class S>
struct norm_input {
  guarded<S> x, gain, bias, dy;
  explicit norm_input(position d, position skew = 1)
      : x(rows, d, 1, 1.5, 0.7, skew),
        gain(1, d, 2, 0.4, 1., skew),
        bias(1, d, 3, 0.5, 0., skew),
        dy(rows, d, 4, 1., 0.2, skew) {}
};

template <class S>
struct norm_run {
  guarded<S> moments, y, dx, dmoments, dgain, dbias;
  explicit norm_run(position d)
      : moments(samples.segments(), 2 * d, 0, 0., 0.),
        y(rows, d),
        dx(rows, d, 6, 1., 0.),
        dmoments(samples.segments(), 2 * d, 0, 0., 0.),
        dgain(1, d, 7, 1., 0.),
        dbias(1, d, 8, 1., 0.) {}
};

// Three ascending and two descending sweeps over the chunks, as the two halves of the layer make.
template <class S>
norm_run<S> run(int threads, const norm_input<S>& in, const std::vector<position>& edges,
                bool trains = true, double epsilon = ::epsilon) {
  norm_run<S> r((*in.x).cols);
  device<S> on(threads);
  const auto ascending = [&](const auto& f) {
    for (std::size_t c = 1; c < edges.size(); ++c) f(row_range{edges[c - 1], edges[c]});
  };
  const auto descending = [&](const auto& f) {
    for (std::size_t c = edges.size(); c-- > 1;) f(row_range{edges[c - 1], edges[c]});
  };
  ascending([&](row_range own) {
    add_time_moments(on, piece_list(samples, own), tile, (*in.x).rows_in(own), *r.moments);
  });
  ascending([&](row_range own) {
    time_norm_forward(on, piece_list(samples, own), (*in.x).rows_in(own), *r.moments, *in.gain,
                      *in.bias, epsilon, (*r.y).rows_in(own));
  });
  descending([&](row_range own) {
    time_norm_backward(on, piece_list(samples, own), tile, (*in.x).rows_in(own), *r.moments,
                       *in.gain, epsilon, (*in.dy).rows_in(own), (*r.dx).rows_in(own), *r.dmoments,
                       trains ? *r.dgain : view<S>(), trains ? *r.dbias : view<S>());
  });
  descending([&](row_range own) {
    time_norm_release(on, piece_list(samples, own), (*in.x).rows_in(own), *r.moments, epsilon,
                      *r.dmoments, (*r.dx).rows_in(own));
  });
  for (const auto* g : {&r.moments, &r.y, &r.dx, &r.dmoments, &r.dgain, &r.dbias})
    CHECK(g->intact());
  return r;
}

// Of one column of one segment.
struct naive_moments {
  double mean = 0, deviation = 0;
};
template <class S>
naive_moments naive(const guarded<S>& x, row_range own, position j) {
  long double mean = 0, squares = 0;
  for (position i = own.first; i < own.last; ++i) mean += (long double)(x(i, j));
  mean /= (long double)(own.rows());
  for (position i = own.first; i < own.last; ++i) {
    const long double apart = (long double)(x(i, j)) - mean;
    squares += apart * apart;
  }
  return {double(mean), double(std::sqrt(squares / (long double)(own.rows()) + epsilon))};
}
template <class S>
double naive_y(const norm_input<S>& in, position i, position j) {
  const naive_moments m = naive(in.x, samples.segment(samples.segment_at(i)), j);
  return (double(in.x(i, j)) - m.mean) / m.deviation * double(in.gain(0, j)) +
         double(in.bias(0, j));
}

template <class S>
bool same(const norm_run<S>& a, const norm_run<S>& b) {
  return same_bits(a.moments, b.moments) && same_bits(a.y, b.y) && same_bits(a.dx, b.dx) &&
         same_bits(a.dmoments, b.dmoments) && same_bits(a.dgain, b.dgain) &&
         same_bits(a.dbias, b.dbias);
}

}  // namespace

TEST_CASE_TEMPLATE("time norm: values, and bits over chunks, threads and places", S, float,
                   double) {
  for (const position d : widths) {
    const norm_input<S> in(d), moved(d, 4);
    const auto once = run<S>(1, in, cuts[0]);
    CHECK(error_of(*once.y, [&](position i, position j) { return naive_y(in, i, j); }) <
          tight<S> * 10);
    for (const auto& edges : cuts) CHECK(same(once, run<S>(2, moved, edges)));
  }
}

TEST_CASE("time norm: gradients are the slopes, and are added") {
  for (const position d : {1, 3, 17}) {
    norm_input<double> in(d);
    const auto r = run<double>(1, in, cuts[1]);
    const norm_run<double> before(d);
    const auto loss_of = [&](position j) {
      double loss = 0;
      for (position i = 0; i < rows; ++i) loss += in.dy(i, j) * naive_y(in, i, j);
      return loss;
    };
    const auto by = [&](guarded<double>& x, position i, position j) {
      return slope(x(i, j), [&] { return loss_of(j); });
    };
    CHECK(error_of(*r.dx, [&](position i, position j) {
            return before.dx(i, j) + by(in.x, i, j);
          }) < 1e-8);
    CHECK(error_of(*r.dgain, [&](position i, position j) {
            return before.dgain(i, j) + by(in.gain, i, j);
          }) < 1e-8);
    CHECK(error_of(*r.dbias, [&](position i, position j) {
            return before.dbias(i, j) + by(in.bias, i, j);
          }) < 1e-8);
  }
}

TEST_CASE("time norm: float gradients agree with double ones") {
  for (const position d : widths) {
    const auto ours = run<float>(1, norm_input<float>(d), cuts[0]);
    const auto right = run<double>(1, norm_input<double>(d), cuts[0]);
    CHECK(error_of(*ours.dx, [&](position i, position j) { return right.dx(i, j); }) < 1e-5);
    CHECK(error_of(*ours.dgain, [&](position i, position j) { return right.dgain(i, j); }) < 1e-5);
  }
}

// Sums around the first row would lose all of the deviation here.
TEST_CASE("time norm: an outlier in front, and a mean far from 0, cost no precision in float") {
  norm_input<float> in(17);
  for (position j = 0; j < 17; ++j) {
    for (position i = 10; i < rows; ++i) in.x(i, j) += 2000;
    in.x(10, j) = -3000;
  }
  const auto r = run<float>(1, in, cuts[1]);
  CHECK(error_of(*r.y, [&](position i, position j) { return naive_y(in, i, j); }) < 1e-5);
  for (position j = 0; j < 17; ++j) {
    const naive_moments m = naive(in.x, {10, 37}, j);
    const double deviation = std::sqrt(double(r.moments(3, 17 + j)) / 27 + epsilon);
    CHECK(std::abs(deviation / m.deviation - 1) < 1e-6);
  }
}

TEST_CASE_TEMPLATE("time norm: a feature that does not vary gives its bias", S, float, double) {
  norm_input<S> in(5);
  for (position i = 0; i < rows; ++i) in.x(i, 2) = S(0.1);
  const auto r = run<S>(1, in, cuts[2]);
  for (position i = 0; i < rows; ++i) CHECK(r.y(i, 2) == in.bias(0, 2));
  CHECK(error_of(*r.dx, [&](position i, position j) { return r.dx(i, j); }) == 0);  // no NaN
}

// Odd columns are multiplied by a power of two, beside which epsilon is nothing: their y is that of
// the column as it is without one, their gradient goes the other way. Even ones keep their bits.
TEST_CASE_TEMPLATE("time norm: features whose squares overflow are normalised like others", S,
                   float, double) {
  for (const int power :
       sizeof(S) == 4 ? std::vector{60, 62, 64, 83, 120} : std::vector{505, 510, 515, 700, 1000}) {
    CAPTURE(power);
    const S scale = std::ldexp(S(1), power);
    norm_input<S> in(33);
    const auto small = run<S>(1, in, cuts[0]), exact = run<S>(1, in, cuts[0], true, 0);
    for (position i = 0; i < rows; ++i)
      for (position j = 1; j < 33; j += 2) in.x(i, j) *= scale;
    const auto large = run<S>(1, in, cuts[0]);
    const guarded<S> before(rows, 33, 6, 1., 0.);
    const auto right = [&](position j) -> const norm_run<S>& { return j % 2 ? exact : small; };
    CHECK(error_of(*large.y, [&](position i, position j) { return right(j).y(i, j); }) <
          10 * tight<S>);
    CHECK(error_of(*large.dgain, [&](position, position j) { return right(j).dgain(0, j); }) <
          10 * tight<S>);
    for (position i = 0; i < rows; ++i)
      for (position j = 0; j < 33; j += 2) {
        CHECK(large.y(i, j) == small.y(i, j));
        CHECK(large.dx(i, j) == small.dx(i, j));
      }
    for (const auto& edges : cuts) CHECK(same(large, run<S>(2, in, edges)));

    norm_input<S> alone = in;  // into a gradient of 0, where what is that small can be seen
    device<S> on(1);
    guarded<S> dx(rows, 33, 0, 0., 0.), dmoments(samples.segments(), 66, 0, 0., 0.);
    const piece_list all(samples, {0, rows});
    time_norm_backward(on, all, tile, *alone.x, *large.moments, *alone.gain, epsilon, *alone.dy,
                       *dx, *dmoments, view<S>(), view<S>());
    time_norm_release(on, all, *alone.x, *large.moments, epsilon, *dmoments, *dx);
    for (position i = 0; i < rows; ++i)
      for (position j = 1; j < 33; j += 2)
        CHECK(std::abs(dx(i, j) * scale - (exact.dx(i, j) - before(i, j))) < 100 * tight<S>);
  }
}

TEST_CASE_TEMPLATE("time norm: without an epsilon features that do not vary give their bias", S,
                   float, double) {
  norm_input<S> in(5);
  for (position i = 0; i < rows; ++i) in.x(i, 2) = 0;
  const auto r = run<S>(1, in, cuts[2], true, 0);
  const guarded<S> before(rows, 5, 6, 1., 0.);
  for (position i = 0; i < rows; ++i) {
    CHECK(r.y(i, 2) == in.bias(0, 2));
    CHECK(r.dx(i, 2) == before(i, 2));
    for (position j = 0; j < 5; ++j) CHECK(std::isfinite(r.dx(i, j)));
  }
}

TEST_CASE_TEMPLATE("time norm: a frozen gain and bias change nothing else", S, float, double) {
  const norm_input<S> in(17);
  const auto all = run<S>(1, in, cuts[0]), frozen = run<S>(1, in, cuts[0], false);
  CHECK(same_bits(all.dx, frozen.dx));
  CHECK(same_bits(frozen.dgain, norm_run<S>(17).dgain));
  CHECK(!same_bits(frozen.dgain, all.dgain));
}

TEST_CASE_TEMPLATE("time norm: the one row of a segment passes nothing back", S, float, double) {
  const norm_input<S> in(5);
  const auto r = run<S>(1, in, cuts[0]);
  const guarded<S> before(rows, 5, 6, 1., 0.);
  for (position j = 0; j < 5; ++j) {
    CHECK(r.y(9, j) == in.bias(0, j));
    CHECK(r.dx(9, j) == before(9, j));
    CHECK(r.dx(8, j) != before(8, j));
  }
}
