// Losses of one's own: a scalar function of the target's log-probability, its slope derived, which
// the laws try; and one of whole rows, its slope written down, against central differences.
#include <cmath>
#include <iostream>

#include <streambp/laws/hold.hpp>
#include <streambp/streambp.hpp>

using namespace streambp;

// [focal]
// Focal loss (Lin et al. 2017): -(1 - p)² log p for the target's probability p.
struct focal_loss {
  token_term term(const row_statistics& r, const label_place&) const {
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

// The largest difference between the gradient and central differences, relative to its largest
// entry.
template <class Engine>
double error_of(Engine& step, const batch<double>& data) {
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
  // [laws]
  const auto report = laws::hold_loss(focal_loss{}, laws::rows(37, 6));
  std::cout << report << "\n";
  if (!report) return 1;
  // [/laws]

  // The laws pack samples anew, and `wanted` belongs to rows of one packing: by hand, then.
  const packed samples({0, 40, 41, 90});
  const auto model =
      residual(rms_norm(16) | causal_attention({.features = 16, .heads = 2})) | swiglu(16, 32);
  std::vector<double> x(90 * 16), wanted(90 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(double(i));
    wanted[i] = std::cos(double(3 * i));
  }
  batch<double> rows;
  rows.rows = {x.data(), 90, 16};
  const squared_error loss{{wanted.data(), 90, 16}};
  // [chunks]
  // Chunks are whole grains, of 256 rows at most where nothing else is said.
  const auto p = plan<double>(model, loss, samples,
                              {.chunk = 16, .features = 16, .grains = {.tile = 8, .grain = 16}});
  // [/chunks]
  std::cout << p.chunk_count() << " chunks\n";
  engine step(p, model, loss);
  return error_of(step, rows) < 1e-6 && p.chunk_count() > 1 ? 0 : 1;
}
