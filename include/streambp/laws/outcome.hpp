// What a step gave, in double: fp32 values are held exactly, so bits can still be compared.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/packed.hpp"

namespace streambp::laws {

enum class tensor_kind : unsigned char { output, parameter, input, context, initial };

// Output: y, or log-probabilities. Any other: the gradient of what the name says.
struct tensor {
  std::string name;
  tensor_kind kind{};
  position cols = 1;
  position offset = 0;       // of what it is the gradient of, in given's buffer
  std::vector<double> data;  // (rows, cols)

  bool by_token() const { return kind == tensor_kind::output || kind == tensor_kind::input; }
  double largest() const {
    double most = 0;
    for (const double v : data) most = std::max(most, std::abs(v));
    return most;
  }
};

struct outcome {
  double value = 0;
  std::vector<tensor> tensors;

  double largest_gradient() const {
    double most = 0;
    for (const tensor& t : tensors)
      if (t.kind != tensor_kind::output) most = std::max(most, t.largest());
    return most;
  }
};

// "y of token 17 (sample 4, position 3), column 2"
inline std::string place_of(const tensor& t, std::size_t entry, const packed& samples) {
  const position row = position(entry) / t.cols, col = position(entry) % t.cols;
  if (!t.by_token()) return sentence(t.name, ", row ", row, ", column ", col);
  const position s = samples.segment_at(row);
  return sentence(t.name, " of token ", row, " (sample ", s, ", position ",
                  row - samples.segment(s).first, "), column ", col);
}

// Any NaN for any other: whether numbers are finite is another question.
inline bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

// Where b has other bits than a, among the entries that `matters` admits; empty: nowhere.
template <class Matters>
std::string other_bits(const tensor& a, const tensor& b, const packed& samples,
                       const Matters& matters) {
  for (std::size_t i = 0; i < a.data.size(); ++i)
    if (matters(position(i) / a.cols) && !same_bits(a.data[i], b.data[i]))
      return sentence(place_of(a, i, samples), " is ", b.data[i], ", not ", a.data[i],
                      " (difference ", b.data[i] - a.data[i], ")");
  return {};
}
inline std::string other_bits(const outcome& a, const outcome& b, const packed& samples) {
  if (!same_bits(a.value, b.value))
    return sentence("the value is ", b.value, ", not ", a.value, " (difference ", b.value - a.value,
                    ")");
  for (std::size_t t = 0; t < a.tensors.size(); ++t)
    if (const auto where =
            other_bits(a.tensors[t], b.tensors[t], samples, [](position) { return true; });
        !where.empty())
      return where;
  return {};
}

// Where b is farther from a than `allowed` times the largest entry, or `least`; empty: nowhere.
inline std::string beyond(const tensor& a, const tensor& b, double allowed, double least,
                          const packed& samples) {
  const double most = std::max({a.largest(), b.largest(), least});
  for (std::size_t i = 0; i < a.data.size(); ++i)
    if (!(std::abs(a.data[i] - b.data[i]) <= allowed * most))
      return sentence(place_of(a, i, samples), " is ", b.data[i], ", not ", a.data[i],
                      " (largest entry ", most, ")");
  return {};
}

}  // namespace streambp::laws
