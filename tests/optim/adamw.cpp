#include <streambp/optim/adamw.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <streambp/cpu/adamw.hpp>
#include <streambp/cpu/elementwise.hpp>
#include <streambp/cpu/look.hpp>
#include <string>
#include <vector>

#include "../unreachable_device.hpp"

using namespace streambp;

namespace {

struct shape {
  position rows = 1, cols = 1;
  bool trains = true;
};

parameter_table table_of(const std::vector<shape>& shapes) {
  parameter_table table;
  for (const shape& s : shapes) table.add({.name = "p", .rows = s.rows, .cols = s.cols}, s.trains);
  return table;
}

// Anything, with both signs and a few sizes.
template <class Scalar>
std::vector<Scalar> filled(position count, int seed) {
  std::vector<Scalar> x;
  for (position i = 0; i < count; ++i)
    x.push_back(Scalar(std::sin(1.7 * double(i) + seed) * std::pow(10, double(i % 5) - 3)));
  return x;
}

// The formula as it stands in the paper, one number at a time.
struct naive {
  double m = 0, v = 0;
  double step(double theta, double g, int t, double rate, const adamw_options& o, bool decays) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t)), v_hat = v / (1 - std::pow(o.beta2, t));
    return theta - rate * (decays ? o.decay * theta : 0) -
           rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
  }
};

// A bias, a matrix of more than one block, a frozen matrix, a small matrix, a gain.
const std::vector<shape> ragged{{1, 37}, {131, 127}, {5, 7, false}, {2, 3}, {1, 1}};

template <class Scalar>
void agrees_with_naive(double tolerance) {
  const parameter_table table = table_of(ragged);
  const adamw_options options{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .decay = 0.3};
  adamw<Scalar> optimizer(table, options);
  auto parameters = filled<Scalar>(table.parameters, 1);
  std::vector<double> expected(parameters.begin(), parameters.end());
  std::vector<naive> state(expected.size());
  for (int t = 1; t <= 4; ++t) {
    const auto gradient = filled<Scalar>(table.gradients, 10 + t);
    const double rate = 0.01 * t;
    optimizer.update(parameters, gradient, rate);
    for (const parameter_info& p : table.entries)
      for (position i = 0; i < p.size() && p.gradient >= 0; ++i) {
        const auto at = std::size_t(p.offset + i);
        expected[at] = state[at].step(expected[at], double(gradient[std::size_t(p.gradient + i)]),
                                      t, rate, options, p.rows > 1);
      }
  }
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(double(parameters[i]) - expected[i]));
  CHECK(worst < tolerance);
  CHECK(optimizer.steps() == 4);
}

}  // namespace

TEST_CASE("adamw is the formula, for every size of parameter") {
  agrees_with_naive<double>(1e-14);
  agrees_with_naive<float>(1e-5);  // parameters up to 10, 24 bits, four roundings a step
}

TEST_CASE("adamw takes the steps that PyTorch's AdamW takes") {
  // torch.optim.AdamW(lr=0.1, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.2), fp64
  const double after[3][4] = {
      {0.8801996007984032, -1.8600999000999001, 0.49, 2.89},
      {0.8359930672596904, -1.878717838128173, 0.40600635266936624, 2.7822000000000005},
      {0.7537307279389108, -1.898215485084457, 0.3750602444653372, 2.691779615374768}};
  const std::vector<double> gradient[3] = {{0.5, -1, 0, 1e-3}, {-0.25, 4, 2, 1e-3}, {1, 1, -1, 0}};
  std::vector<double> parameters{1, -2, 0.5, 3};
  adamw<double> optimizer(table_of({{2, 2}}),
                          {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3, .decay = 0.2});
  for (int t = 0; t < 3; ++t) {
    optimizer.update(parameters, gradient[t], 0.1);
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(parameters[i] - after[t][i]) < 1e-14);
  }
}

TEST_CASE("a first step by hand") {
  // m̂ = g and v̂ = g², so each entry moves by rate · g / (|g| + ε), and what decays by 1 % besides.
  const parameter_table table = table_of({{2, 1}, {1, 2}});
  adamw<double> optimizer(table, {.epsilon = 0, .decay = 0.1});
  std::vector<double> parameters{2, -4, 2, -4};
  const std::vector<double> gradient{3, 0.25, 3, 0.25};
  optimizer.update(parameters, gradient, 0.1);
  const double expected[] = {1.98 - 0.1, -3.96 - 0.1, 2 - 0.1, -4 - 0.1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(parameters[i] - expected[i]) < 1e-14);
}

TEST_CASE("what is frozen stays, to the bit") {
  const parameter_table table = table_of(ragged);
  adamw<float> optimizer(table);
  auto parameters = filled<float>(table.parameters, 1);
  const auto before = parameters;
  optimizer.update(parameters, filled<float>(table.gradients, 2), 0.1);
  for (const parameter_info& p : table.entries)
    for (position i = p.offset; i < p.offset + p.size(); ++i)
      CHECK((parameters[std::size_t(i)] == before[std::size_t(i)]) == (p.gradient < 0));
}

TEST_CASE("threads and a parameter's place leave the bits as they are") {
  const auto trained = [](const std::vector<shape>& shapes, int threads) {
    const parameter_table table = table_of(shapes);
    adamw<float> optimizer(table, {}, threads);
    auto parameters = filled<float>(table.parameters, 1);
    for (int t = 0; t < 3; ++t)
      optimizer.update(parameters, filled<float>(table.gradients, t), 1e-2);
    return parameters;
  };
  const auto one = trained({{300, 211}, {7, 9}}, 1);
  for (const int threads : {2, 3}) {
    const auto many = trained({{300, 211}, {7, 9}}, threads);
    CHECK(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)) == 0);
  }
  // The same rows as parameters of their own: pieces end elsewhere.
  const auto split = trained({{100, 211}, {200, 211}, {7, 9}}, 1);
  CHECK(std::memcmp(one.data(), split.data(), one.size() * sizeof(float)) == 0);
}

TEST_CASE("the factor scales the gradient") {
  const parameter_table table = table_of({{19, 3}});
  auto parameters = filled<double>(table.parameters, 1), same = parameters;
  auto gradient = filled<double>(table.gradients, 2);
  adamw<double> whole(table), scaled(table);
  whole.update(parameters, gradient, 0.1, 0.25);
  for (double& g : gradient) g /= 4;
  scaled.update(same, gradient, 0.1);
  CHECK(parameters == same);
  CHECK(std::equal(whole.first_moments().begin(), whole.first_moments().end(),
                   scaled.first_moments().begin()));
  CHECK(std::equal(whole.second_moments().begin(), whole.second_moments().end(),
                   scaled.second_moments().begin()));
}

TEST_CASE("buffers of another model are refused") {
  adamw<float> optimizer(table_of({{2, 3}, {4, 5, false}}));
  std::vector<float> parameters(26), gradient(6);
  CHECK_THROWS_WITH_AS(optimizer.update(gradient, gradient, 1),
                       "adamw: parameters has 6 entries, the table has 26", shape_error);
  CHECK_THROWS_WITH_AS(optimizer.update(parameters, parameters, 1),
                       "adamw: gradient has 26 entries, the table has 6", shape_error);
  CHECK(optimizer.steps() == 0);
}

TEST_CASE("rates and options that cannot be are refused, and move nothing") {
  const parameter_table table = table_of({{2, 3}});
  const auto words = [&](const adamw_options& o, double rate, double factor, int threads = 1) {
    std::vector<float> parameters(6, 1.f), gradient(6, 2.f);
    std::string said;
    try {
      adamw<float> optimizer(table, o, threads);
      optimizer.update(parameters, gradient, rate, factor);
    } catch (const data_error& e) {
      said = e.what();
    }
    CHECK((said.empty() || parameters == std::vector<float>(6, 1.f)));
    return said;
  };
  CHECK(words({}, 1e-3, 1) == "");
  CHECK(words({}, -1, 1) == "adamw: rate is -1; it is finite and not negative");
  CHECK(words({}, std::nan(""), 1) == "adamw: rate is nan; it is finite and not negative");
  CHECK(words({}, 1, HUGE_VAL) == "adamw: factor is inf; it is finite and not negative");
  CHECK(words({.beta1 = 1}, 1, 1) == "adamw: beta1 is 1; it is finite and in [0, 1)");
  CHECK(words({.beta2 = -0.5}, 1, 1) == "adamw: beta2 is -0.5; it is finite and in [0, 1)");
  CHECK(words({.epsilon = -1}, 1, 1) == "adamw: epsilon is -1; it is finite and not negative");
  CHECK(words({.decay = -1}, 1, 1) == "adamw: decay is -1; it is finite and not negative");
  CHECK(words({}, 1, 1, 0) == "adamw: threads is 0; it is finite and at least 1");
}

TEST_CASE("a gradient, a factor or a rate that cannot be changes nothing") {
  parameter_table table;
  table.add({.name = "embedding.table", .rows = 300, .cols = 211}, true);
  table.add({.name = "linear.weight", .rows = 7, .cols = 9}, true);
  for (const int threads : {1, 3}) {
    adamw<float> optimizer(table, {}, threads);
    auto parameters = filled<float>(table.parameters, 1);
    const auto gradient = filled<float>(table.gradients, 2);
    optimizer.update(parameters, gradient, 0.1);
    const auto before = parameters;
    const std::vector<float> first(optimizer.first_moments().begin(),
                                   optimizer.first_moments().end());
    const auto refused = [&](std::span<const float> g, double rate, double factor) {
      std::string said;
      try {
        optimizer.update(parameters, g, rate, factor);
      } catch (const data_error& e) {
        said = e.what();
      }
      CHECK(optimizer.steps() == 1);
      CHECK(parameters == before);
      CHECK(std::equal(first.begin(), first.end(), optimizer.first_moments().begin()));
      return said;
    };
    for (const double wrong : {-1., std::nan(""), HUGE_VAL}) {
      CHECK(refused(gradient, wrong, 1).starts_with("adamw: rate is "));
      CHECK(refused(gradient, 0.1, wrong).starts_with("adamw: factor is "));
    }
    for (const float wrong : {NAN, HUGE_VALF, -HUGE_VALF, 1e30f}) {
      auto bad = gradient;
      bad[63300 + 9 + 4] = wrong;
      CHECK(refused(bad, 0.1, 1) ==
            sentence("adamw: the gradient of linear.weight is ", wrong,
                     " at row 1, column 4; it and its square must be finite: leave this step out, "
                     "or look where it comes from"));
      bad[211 * 250 + 3] = wrong;  // the first one is named, whichever thread finds it
      CHECK(refused(bad, 0.1, 1).find("at row 250, column 3;") != std::string::npos);
    }
    auto large = gradient;
    large[5] = 1e30f;
    optimizer.update(parameters, large, 0.1, 1e-20);
    CHECK(std::isfinite(parameters[5]));
  }
}

TEST_CASE("a gradient that reaches into the parameters is refused") {
  const parameter_table table = table_of({{2, 3}});
  adamw<double> optimizer(table);
  std::vector<double> both(9);
  CHECK_THROWS_WITH_AS(optimizer.update(std::span(both).first(6), std::span(both).subspan(3), 1),
                       "adamw: gradient and parameters share memory; each has its own",
                       shape_error);
}

TEST_CASE("restore takes another one's moments, or nothing") {
  const parameter_table table = table_of(ragged);
  adamw<double> one(table), other(table);
  auto parameters = filled<double>(table.parameters, 1);
  one.update(parameters, filled<double>(table.gradients, 2), 0.1);
  const std::vector<double> none(std::size_t(table.gradients)), few(3);
  CHECK_THROWS_WITH_AS(
      other.restore(1, few, none),
      sentence("adamw: restore's first moments has 3 entries, the table has ", none.size()).c_str(),
      shape_error);
  CHECK_THROWS_WITH_AS(
      other.restore(1, none, few),
      sentence("adamw: restore's second moments has 3 entries, the table has ", none.size())
          .c_str(),
      shape_error);
  CHECK_THROWS_WITH_AS(other.restore(-1, none, none),
                       "adamw: restore after -1 steps; they are not negative", data_error);
  std::vector<double> second(none.size());
  second[2] = -0.5;
  CHECK_THROWS_WITH_AS(
      other.restore(1, none, second),
      "adamw: restore's moments of p are 0 and -0.5 at entry 2; both are finite, the second is "
      "not negative",
      data_error);
  CHECK(other.steps() == 0);
  CHECK(other.first_moments()[0] == 0);
  other.restore(one.steps(), one.first_moments(), one.second_moments());
  auto same = parameters;
  const auto gradient = filled<double>(table.gradients, 3);
  one.update(parameters, gradient, 0.1);
  other.update(same, gradient, 0.1);
  CHECK(same == parameters);
}

TEST_CASE("on memory that the host cannot touch: the same bits, the same words") {
  using far = unreachable::device<float>;
  const parameter_table table = table_of(ragged);
  adamw<float> near_by(table, {}, 2);
  adamw<float, far> away(table, {}, 2), resumed(table, {}, 2);
  auto parameters = filled<float>(table.parameters, 1);
  const unreachable::buffer<float> own(std::span<const float>{parameters});
  far on(1);
  const auto same = [&](std::span<const float> here, std::span<const float> there) {
    const primitives::host_copy<far> copy(on, there);
    return std::memcmp(here.data(), copy.entries().data(), here.size_bytes()) == 0;
  };
  for (int t = 0; t < 3; ++t) {
    auto gradient = filled<float>(table.gradients, 2 + t);
    near_by.update(parameters, gradient, 0.1);
    (t < 2 ? away : resumed)
        .update(own.span(), unreachable::buffer<float>(std::span<const float>{gradient}).span(),
                0.1);
    CHECK(same(parameters, own.span()));
    if (t == 1) resumed.restore(2, near_by.first_moments(), near_by.second_moments());
  }
  CHECK(same(near_by.first_moments(), resumed.first_moments()));
  CHECK(same(near_by.second_moments(), resumed.second_moments()));

  auto gradient = filled<float>(table.gradients, 9);
  gradient[37 + 127 * 5 + 3] = -HUGE_VALF;
  const unreachable::buffer<float> bad(std::span<const float>{gradient});
  CHECK_THROWS_WITH_AS(resumed.update(own.span(), bad.span(), 0.1),
                       doctest::Contains("the gradient of p is -inf at row 5, column 3;"),
                       data_error);
  CHECK(same(parameters, own.span()));
}
