// Values and slopes where functions have a kink, a tie, a limit or no slope at all: written by
// hand, and the same in every way of deriving.
#include <streambp/expression/dual.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

namespace streambp {
namespace {

using v = autodiff::variable;
using d = autodiff::dual<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

struct point {
  double x, value, slope;
};

// A function in its three forms: of numbers, of lanes of entries, of rows.
struct subject {
  std::string name;
  std::vector<point> points;
  d (*of_number)(const d&);
  v (*of_rows)(v);
  void (*of_floats)(cpu::device<float>&, view<const float>, view<const float>, view<float>,
                    view<float>);
  void (*of_doubles)(cpu::device<double>&, view<const double>, view<const double>, view<double>,
                     view<double>);
};

template <class F>
struct entry_layer {
  auto forward(auto x) const { return F{}(x); }
};
// y = f(x), dx += dy f'(x).
template <class F, class S>
void by_entries(cpu::device<S>& on, view<const S> x, view<const S> dy, view<S> y, view<S> dx) {
  map_entries(on, entry_layer<F>{}, x, y);
  differentiate_entries(on, entry_layer<F>{}, x, dy, dx);
}

template <class F>
subject make(const char* name, std::vector<point> points, F) {
  return {name,
          std::move(points),
          [](const d& x) -> d { return F{}(x); },
          [](v x) -> v { return F{}(x); },
          by_entries<F, float>,
          by_entries<F, double>};
}

const double ln2 = std::log(2.);

// The points of fp64; those that fp32 cannot tell apart from 0 or infinity are left out there.
const subject subjects[] = {
    make("softplus",
         {{0, ln2, 0.5},
          {-1e-18, ln2, 0.5},
          {-30, 9.357622968839299e-14, 9.357622968839299e-14},
          {-40, 4.248354255291589e-18, 4.248354255291589e-18},
          {-800, 0, 0},
          {40, 40, 1},
          {800, 800, 1}},
         [](auto x) { return softplus(x); }),
    make("log_sigmoid",
         {{0, -ln2, 0.5},
          {30, -9.357622968839299e-14, 9.357622968839299e-14},
          {-40, -40, 1},
          {-800, -800, 1},
          {800, 0, 0}},
         [](auto x) { return log_sigmoid(x); }),
    make("sigmoid", {{0, 0.5, 0.25}, {-40, 4.248354255291589e-18, 4.248354255291589e-18}},
         [](auto x) { return sigmoid(x); }),
    make("log1p", {{0, 0, 1}, {1e-18, 1e-18, 1}, {-0.5, -ln2, 2}, {1e30, std::log(1e30), 1e-30}},
         [](auto x) { return log1p(x); }),
    make("expm1",
         {{0, 0, 1},
          {1e-18, 1e-18, 1},
          {-1e-18, -1e-18, 1},
          {-50, -1, std::exp(-50.)},
          {2, std::expm1(2.), std::exp(2.)}},
         [](auto x) { return expm1(x); }),
    make("relu", {{0, 0, 0}, {-1, 0, 0}, {1, 1, 1}, {-1e-30, 0, 0}, {1e-30, 1e-30, 1}},
         [](auto x) { return relu(x); }),
    make("abs", {{0, 0, 0}, {-2, 2, -1}, {2, 2, 1}}, [](auto x) { return abs(x); }),
    make("a tie of max is the second's", {{0, 0, 3}, {1, 3, 3}, {-1, -2, 2}},
         [](auto x) { return max(2 * x, 3 * x); }),
    make("a tie of min is the second's", {{0, 0, 3}, {1, 2, 2}, {-1, -3, 3}},
         [](auto x) { return min(2 * x, 3 * x); }),
    make("max(x, 0)", {{0, 0, 0}, {1, 1, 1}}, [](auto x) { return max(x, 0); }),
    make("sqrt", {{0, 0, 0}, {4, 2, 0.25}, {1e-20, 1e-10, 0.5e10}}, [](auto x) { return sqrt(x); }),
    make("a length", {{0, 0, 0}, {-3, 3, -1}, {1e-10, 1e-10, 1}},
         [](auto x) { return sqrt(square(x)); }),
    make("a length by products", {{0, 0, 0}, {-3, 3, -1}}, [](auto x) { return sqrt(x * x); }),
    make("the root where there is one", {{-1, -1, 1}, {-4, -4, 1}, {4, 2, 0.25}},
         [](auto x) { return select(x, sqrt(x), x); }),
    make("the logarithm where there is one", {{-1, 0, 0}, {0, 0, 0}, {2, 2 * ln2, ln2 + 1}},
         [](auto x) { return select(x, x * log(x), 0 * detach(x)); }),
    make("the inverse where there is one", {{0, 0, 1}, {4, 0.25, -1. / 16}, {-2, -2, 1}},
         [](auto x) { return select(x, 1 / x, x); }),
    make("the quotient where there is one", {{0, 0, 1}, {4, 1, 0}, {-2, -2, 1}},
         [](auto x) { return select(x, x / x, x); }),
    make("a branch that overflows", {{1000, 1000, 1}, {-1, std::exp(-1.), std::exp(-1.)}},
         [](auto x) { return select(x, x, exp(x)); }),
    make("the direction", {{-2, -1, 0}, {5, 1, 0}}, [](auto x) { return x / abs(x); }),
    make("what is detached", {{0, -inf, 0}, {2, ln2, 0}}, [](auto x) { return log(detach(x)); }),
};

bool near(double got, double right, double allowed) {
  return got == right || std::abs(got - right) <= allowed * std::abs(right);
}

template <class S>
bool tells(const point& p) {
  const auto in = [](double number) {
    return number == 0 || std::isinf(number) ||
           (std::abs(number) > 1e-36 && std::abs(number) < 1e36);
  };
  return sizeof(S) == 8 || (in(p.x) && in(p.value) && in(p.slope));
}

// A row layer whose function is a value, so that one engine serves all.
struct row_layer {
  v (*f)(v);
  v forward(auto&, v x) const { return f(x); }
};
// Takes the rows, and gives each entry a gradient of 1.
struct looking {
  std::vector<double>* seen;
  double rows(auto&, position first, auto y) const {
    for (position i = 0; i < y.rows; ++i) {
      (*seen)[std::size_t(first + i)] = double(y(i, 0));
      y(i, 0) = 1;
    }
    return 0;
  }
};

}  // namespace

TEST_CASE("forward mode: values and slopes at kinks, ties and limits") {
  for (const subject& s : subjects)
    for (const point& p : s.points) {
      CAPTURE(s.name);
      CAPTURE(p.x);
      const d y = s.of_number(d::independent(p.x));
      CHECK(near(y.value, p.value, 1e-13));
      CHECK(near(y.slope[0], p.slope, 1e-13));
    }
}

TEST_CASE("forward mode: one number's infinite slope does not touch the others'") {
  const auto [value, slopes] = autodiff::differentiate(
      [](auto a, auto b, auto c) { return select(c, 1, log(a) + b / a) + 2 * b + a; }, 0., 3., 1.);
  CHECK(value == 7);
  CHECK(slopes[0] == 1);
  CHECK(slopes[1] == 2);
  CHECK(slopes[2] == 0);
  const auto at_0 = autodiff::differentiate([](auto a, auto b) { return log(a) + 2 * b; }, 0., 3.);
  CHECK(at_0.slopes[0] == inf);
  CHECK(at_0.slopes[1] == 2);
}

TEST_CASE_TEMPLATE("entries: values and slopes at kinks, ties and limits", S, float, double) {
  cpu::device<S> on(1);
  for (const subject& s : subjects)
    for (const point& p : s.points) {
      if (!tells<S>(p)) continue;
      CAPTURE(s.name);
      CAPTURE(p.x);
      S x = S(p.x), one = 1, none = 0, y = 7, dx = 0, untouched = 3;
      const auto run = [&](S& dy, S& d_to) {
        if constexpr (sizeof(S) == 4)
          s.of_floats(on, {&x, 1, 1}, {&dy, 1, 1}, {&y, 1, 1}, {&d_to, 1, 1});
        else
          s.of_doubles(on, {&x, 1, 1}, {&dy, 1, 1}, {&y, 1, 1}, {&d_to, 1, 1});
      };
      run(one, dx);
      const double allowed = sizeof(S) == 4 ? 1e-6 : 1e-13;
      CHECK(near(double(y), p.value, allowed));
      CHECK(near(double(dx), p.slope, allowed));
      run(none, untouched);
      CHECK(untouched == 3);
    }
}

TEST_CASE_TEMPLATE("rows: values and slopes at kinks, ties and limits", S, float, double) {
  for (const subject& s : subjects) {
    CAPTURE(s.name);
    std::vector<point> points;
    for (const point& p : s.points)
      if (tells<S>(p)) points.push_back(p);
    const auto n = position(points.size());
    std::vector<double> seen(points.size());
    const row_layer model{s.of_rows};
    const looking loss{&seen};
    engine step(plan<S>(model, loss, packed::one(n), {.features = 1, .input_gradient = true}),
                model, loss);
    std::vector<S> x, dx(points.size()), none;
    for (const point& p : points) x.push_back(S(p.x));
    batch<S> data;
    data.rows = {x.data(), n, 1};
    data.d_rows = {dx.data(), n, 1};
    step.add_gradient(none, data, none);
    const double allowed = sizeof(S) == 4 ? 1e-6 : 1e-13;
    for (std::size_t i = 0; i < points.size(); ++i) {
      CAPTURE(points[i].x);
      CHECK(near(seen[i], points[i].value, allowed));
      CHECK(near(double(dx[i]), points[i].slope, allowed));
    }
  }
}

TEST_CASE("a row's length, softmax and log-sum-exp at zeros and at ties") {
  struct one {
    v (*f)(v);
    std::vector<double> x, dx;
    double value;
  };
  const double third = 1. / 3;
  for (const one& c :
       {one{[](v x) { return sqrt(row_sum(square(x))); }, {0, 0, 0}, {0, 0, 0}, 0},
        one{[](v x) { return log_sum_exp(x); }, {0, 0, 0}, {third, third, third}, std::log(3.)},
        one{[](v x) { return log_sum_exp(x); }, {3e38, 3e38, 3e38}, {third, third, third}, 3e38},
        one{[](v x) { return log_sum_exp(x); }, {-800, 0, -800}, {0, 1, 0}, 0},
        one{[](v x) { return slice(softmax(x), 0, 1); },
            {0, 0, 0},
            {2. / 9, -1. / 9, -1. / 9},
            third},
        one{[](v x) { return row_max(x); }, {1, 2, 2}, {0, 1, 0}, 2},
        one{[](v x) { return slice(l2_normalise(x, 16), 0, 1); },
            {3, 0, 0},
            {16. / 125, 0, 0},
            0.6},
        one{[](v x) { return slice(l2_normalise(x, 0), 0, 1); }, {0, 0, 0}, {0, 0, 0}, 0},
        one{[](v x) { return slice(l2_normalise(x), 1, 1); }, {0, 3e200, 4e200}, {0, 0, 0}, 0.6}}) {
    std::vector<double> seen(1);
    const row_layer model{c.f};
    const looking loss{&seen};
    engine step(plan<double>(model, loss, packed::one(1), {.features = 3, .input_gradient = true}),
                model, loss);
    std::vector<double> x = c.x, dx(3), none;
    batch<double> data;
    data.rows = {x.data(), 1, 3};
    data.d_rows = {dx.data(), 1, 3};
    step.add_gradient(none, data, none);
    CHECK(near(seen[0], c.value, 1e-14));
    for (std::size_t j = 0; j < 3; ++j)
      CHECK((near(dx[j], c.dx[j], 1e-14) || std::abs(dx[j] - c.dx[j]) < 1e-15));
  }
}

namespace {

double exponent = 0;  // of the forwards below, which are functions of x alone

struct power {
  auto operator()(auto x) const { return pow(x, exponent); }
};

// x^p and its slope by the standard library, but for what no slope is there.
point power_of(double x) {
  const double p = exponent;
  const double slope = p == 0 || (x == 0 && p > 0 && p < 1) ? 0 : p * std::pow(x, p - 1);
  return {x, std::pow(x, p), slope};
}

const double bases[] = {0, 1, 2, 0.3, -1, -2, -0.7, 1e-10, -1e-10, 50, -3, 7e3};
const double exponents[] = {0,   1,   2,    3,  4,  7,  33,   34,   0.5,  1.5, 2.5,
                            3.5, 1.7, 0.25, -1, -2, -3, -0.5, -1.5, -0.3, -1.7};

}  // namespace

TEST_CASE_TEMPLATE("powers: values and slopes in every way of deriving", S, float, double) {
  constexpr auto n = position(std::size(bases));
  std::vector<double> seen(n);
  const row_layer model{[](v x) { return power{}(x); }};
  const looking loss{&seen};
  engine step(plan<S>(model, loss, packed::one(n), {.features = 1, .input_gradient = true}), model,
              loss);
  for (const double p : exponents) {
    CAPTURE(p);
    exponent = p;
    std::vector<S> x, in_rows, dx(n), none, y(n), dx_of_entries(n);
    std::vector<point> right;
    for (const double base : bases) {
      x.push_back(S(base));
      right.push_back(power_of(double(x.back())));
      const bool finite =
          std::isfinite(S(right.back().value)) && std::isfinite(S(right.back().slope));
      in_rows.push_back(finite ? x.back() : S(1));  // a step refuses others
    }
    const std::vector<S> ones(n, S(1));
    batch<S> data;
    data.rows = {in_rows.data(), n, 1};
    data.d_rows = {dx.data(), n, 1};
    step.add_gradient(none, data, none);
    cpu::device<S> on(1);
    const auto row = [](auto& of) { return view(of.data(), 1, n); };
    by_entries<power, S>(on, row(x), row(ones), row(y), row(dx_of_entries));
    for (std::size_t i = 0; i < std::size(bases); ++i) {
      CAPTURE(x[i]);
      const auto [base, value, slope] = right[i];
      const auto lost = [](double v) { return v != 0 && std::abs(v) < 1e-290; };
      if (!tells<S>(right[i]) || lost(value) || lost(slope)) continue;
      const double allowed = (sizeof(S) == 4 ? 1e-6 : 1e-15) * (4 + std::abs(p) * 10);
      const auto agrees = [&](double got, double wanted) {
        return std::isnan(wanted) ? std::isnan(got) : near(got, wanted, allowed);
      };
      const d number = pow(d::independent(base), p);
      CHECK(agrees(number.value, value));
      CHECK(agrees(number.slope[0], slope));
      CHECK(agrees(double(y[i]), value));
      CHECK(agrees(double(dx_of_entries[i]), slope));
      if (in_rows[i] != x[i]) continue;
      CHECK(agrees(seen[i], value));
      CHECK(agrees(double(dx[i]), slope));
    }
  }
}

// The first of z = (x - mean) / deviation, by hand: its slopes are ((j = 0) - c - z0 zj / 3) over
// the deviation, with c a third for rows that are centred and nothing for others.
TEST_CASE_TEMPLATE("rows whose squares overflow or are lost are normalised like others", S, float,
                   double) {
  const double row[] = {1, -2, 3.5};
  std::vector<double> sizes = {1, 1e3, 1e12, 1e17, 1e19, 1e25, 1e35, 0};
  if (sizeof(S) == 8) sizes = {1, 1e70, 1e140, 1e155, 1e200, 1e300, 0};
  for (std::size_t i = sizes.size() - 1; i-- > 0;) sizes.push_back(1 / sizes[i]);
  const auto n = position(sizes.size());
  for (const bool centred : {false, true}) {
    CAPTURE(centred);
    std::vector<double> seen(sizes.size());
    const row_layer model{centred ? [](v x) { return slice(normalise(x, 0), 0, 1); }
                                  : [](v x) { return slice(rms_normalise(x, 0), 0, 1); }};
    const looking loss{&seen};
    engine step(plan<S>(model, loss, packed::one(n), {.features = 3, .input_gradient = true}),
                model, loss);
    std::vector<S> x, dx(3 * sizes.size()), none;
    for (const double size : sizes)
      for (const double entry : row) x.push_back(S(size * entry));
    batch<S> data;
    data.rows = {x.data(), n, 3};
    data.d_rows = {dx.data(), n, 3};
    step.add_gradient(none, data, none);

    const double mean = centred ? 2.5 / 3 : 0;
    double squares = 0;
    for (const double entry : row) squares += (entry - mean) * (entry - mean);
    const double deviation = std::sqrt(squares / 3), allowed = sizeof(S) == 4 ? 2e-6 : 1e-14;
    const auto z = [&](std::size_t j) { return (row[j] - mean) / deviation; };
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CAPTURE(sizes[i]);
      CHECK(std::abs(seen[i] - (sizes[i] > 0 ? z(0) : 0)) < allowed);
      for (std::size_t j = 0; j < 3; ++j) {
        const double slope = (j == 0) - (centred ? 1. / 3 : 0) - z(0) * z(j) / 3;
        CHECK(std::abs(double(dx[3 * i + j]) * sizes[i] * deviation - (sizes[i] > 0 ? slope : 0)) <
              allowed);
      }
      if (sizes[i] == 0) CHECK(std::count(&dx[3 * i], &dx[3 * i] + 3, S(0)) == 3);
    }
  }
}

TEST_CASE("preference losses at policy = reference and at margins of 800") {
  struct row {
    double margin, value, slope;  // of the chosen one's sum
  };
  direct_preference loss{.pairs = {{0, 1}}, .reference = {-5, -7}, .beta = 1};
  for (const row& r : {row{0, ln2, -0.5}, row{800, 0, 0}, row{-800, 800, -1},
                       row{40, 4.248354255291589e-18, -4.248354255291589e-18}}) {
    const double sums[] = {-5 + r.margin, -7};
    double slopes[] = {7, 7};
    CHECK(near(loss.couple(sums, slopes), r.value, 1e-13));
    CHECK(near(slopes[0], r.slope, 1e-13));
    CHECK(slopes[1] == -slopes[0]);
  }
}

}  // namespace streambp
