// Losses of one's own: a scalar function of the target's log-probability, its slope derived; and one of
// whole rows, its slope written down. Both are checked against central differences.
#include <streambp/streambp.hpp>

#include <streambp/autodiff/loss_term.hpp>

#include <cmath>
#include <iostream>

using namespace streambp;

// [focal]
// Focal loss (Lin et al. 2017): -(1 - p)² log p for the target's probability p.
struct focal_loss {
  token_term term(const row_statistics& r, const token&) const {
    return autodiff::term_of(r, [](auto lse, auto target, auto) {
      const auto log_p = target - lse;
      return -square(1 - exp(log_p)) * log_p;
    });
  }
};
// [/focal]

// [rows]
// Half the mean squared difference of each row from a wanted one.
struct squared_error {
  view<const double> wanted;  // (tokens, features)

  double rows(auto&, position first, view<double> y) const {
    double value = 0;
    const double n = double(wanted.rows * wanted.cols);
    for (position i = 0; i < y.rows; ++i)
      for (position j = 0; j < y.cols; ++j) {
        const double difference = y(i, j) - wanted(first + i, j);
        value += difference * difference / (2 * n);
        y(i, j) = difference / n;  // the gradient, in place
      }
    return value;
  }
};
// [/rows]

// The largest difference between the gradient and central differences, relative to its largest entry.
template <class Model, class Loss>
double error_of(const Model& model, const Loss& loss, const packed& samples,
                const batch<double>& data, const plan_options& options) {
  engine step(plan<double>(model, loss, samples, options), model, loss);
  auto parameters = initial_parameters<double>(step.parameters(), 1);
  const auto [value, gradient] = step.value_and_gradient(parameters, data);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < parameters.size(); i += 17) {
    const double at = parameters[i], h = 1e-5;
    parameters[i] = at + h;
    const double above = step.value(parameters, data);
    parameters[i] = at - h;
    const double below = step.value(parameters, data);
    parameters[i] = at;
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[i]));
    largest = std::max(largest, std::abs(gradient[i]));
  }
  std::cout << "loss " << value << ", error of the gradient " << worst / largest << "\n";
  return worst / largest;
}

int main() {
  const packed samples({0, 40, 41, 90});
  const auto attend = residual(rms_norm(16) | causal_attention({.features = 16, .heads = 2}));

  std::vector<std::int32_t> tokens;
  for (position t = 0; t < samples.tokens(); ++t) tokens.push_back(std::int32_t(t * t % 11));
  batch<double> text;
  text.tokens = text.labels = tokens;
  const double focal = error_of(embedding(11, 16) | attend | rms_norm(16) | linear(16, 11),
                                focal_loss{}, samples, text, {.chunk = 64});

  std::vector<double> x(90 * 16), wanted(90 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(double(i));
    wanted[i] = std::cos(double(3 * i));
  }
  batch<double> rows;
  rows.rows = {x.data(), 90, 16};
  const double squared = error_of(attend | swiglu(16, 32), squared_error{{wanted.data(), 90, 16}},
                                  samples, rows, {.chunk = 64, .features = 16});
  return focal < 1e-6 && squared < 1e-6 ? 0 : 1;
}
