#include "written.hpp"

namespace streambp {
namespace {

using v = autodiff::variable;
using at_type = written::at_type;
constexpr auto w = written::wide;
constexpr auto s = written::square;
constexpr auto g = written::gain;
constexpr auto f = written::factor;

struct one {
  std::string name;
  v (*forward)(const at_type&, v);
};

// Every parameter takes part in some case as a matrix, a row, a number; x at or between kinks
// never.
const one cases[] = {
    {"x", [](const at_type&, v x) { return x; }},
    {"number", [](const at_type& at, v x) { return 2 - (x + 1) * 3 / 4 + at[g] * 0.5; }},
    {"negate", [](const at_type&, v x) { return -x; }},
    {"add and subtract", [](const at_type& at, v x) { return x + at[g] - (at[f] - x); }},
    {"multiply", [](const at_type& at, v x) { return x * x * at[g] * at[f]; }},
    {"divide",
     [](const at_type& at, v x) { return x / (1 + square(at[g])) + 1 / (2 + square(x)); }},
    {"gain about 1", [](const at_type& at, v x) { return x * (1 + at[g]); }},
    {"parameters alone", [](const at_type& at, v) { return at[g] * at[g] * at[f]; }},
    {"exp", [](const at_type&, v x) { return exp(x); }},
    {"expm1", [](const at_type&, v x) { return expm1(x); }},
    {"log", [](const at_type&, v x) { return log(1.5 + x * x); }},
    {"log1p", [](const at_type&, v x) { return log1p(x * x); }},
    {"log_sigmoid", [](const at_type&, v x) { return log_sigmoid(x); }},
    {"tanh", [](const at_type&, v x) { return tanh(x); }},
    {"sigmoid", [](const at_type&, v x) { return sigmoid(x); }},
    {"silu", [](const at_type&, v x) { return silu(x); }},
    {"gelu", [](const at_type&, v x) { return gelu(x); }},
    {"relu", [](const at_type&, v x) { return relu(x); }},
    {"square", [](const at_type&, v x) { return square(x); }},
    {"sqrt", [](const at_type&, v x) { return sqrt(1.5 + x * x); }},
    {"powers",
     [](const at_type& at, v x) {
       return pow(x, 3) + pow(2 + x * x, -0.5) * pow(1.5 + x * at[g], 2) + pow(1.2 + x * x, 1.7) +
              pow(3 + x, -1.3) * pow(at[f], 1);
     }},
    {"abs", [](const at_type&, v x) { return abs(x); }},
    {"softplus", [](const at_type&, v x) { return softplus(x); }},
    {"max and min", [](const at_type&, v x) { return max(x, 0) * 3 + min(-2 * x, 0); }},
    {"max of rows",
     [](const at_type& at, v x) { return max(x * 4, at[g]) + min(0.1 * x, 1 + x * x); }},
    {"select", [](const at_type& at, v x) { return select(x, exp(x), at[g] * x); }},
    {"select of itself",
     [](const at_type&, v x) { return select(x, x, 0.2 * x) * select(x, 1, x); }},
    {"product", [](const at_type& at, v x) { return matmul(x, at[s]); }},
    {"product, wider", [](const at_type& at, v x) { return matmul(x, at[w]); }},
    {"product and bias", [](const at_type& at, v x) { return matmul(x, at[s]) + at[g]; }},
    {"product of an expression",
     [](const at_type& at, v x) { return matmul(silu(x) * at[g], at[w]); }},
    {"two products of the same rows",
     [](const at_type& at, v x) {
       const v h = tanh(x);
       return matmul(h, at[s]) * sigmoid(matmul(h, at[s])) + h;
     }},
    {"a weight used twice",
     [](const at_type& at, v x) { return matmul(tanh(matmul(x, at[s])), at[s]); }},
    {"products in a chain",
     [](const at_type& at, v x) { return matmul(matmul(matmul(x, at[s]), at[s]), at[w]); }},
    {"a result that is read again",
     [](const at_type& at, v x) {
       const v y = matmul(x, at[s]);
       return y * y + matmul(y, at[s]);
     }},
    {"row sum", [](const at_type&, v x) { return x * row_sum(x * x); }},
    {"row mean", [](const at_type& at, v x) { return row_mean(x * at[g]) + x; }},
    {"one column", [](const at_type& at, v x) { return tanh(row_sum(x) * at[f]); }},
    {"row max", [](const at_type& at, v x) { return x * row_max(slice(x * at[g], 1, 2)); }},
    {"row max behind a block",
     [](const at_type&, v x) {
       return x * row_max(concatenate(tanh(x), 3 + tanh(slice(x, 1, 1))));
     }},
    {"softmax", [](const at_type& at, v x) { return softmax(matmul(x, at[w])); }},
    {"log-sum-exp", [](const at_type&, v x) { return log_sum_exp(x * 3) * x; }},
    {"softmax of many columns", [](const at_type&, v x) { return softmax(x * 2) * x; }},
    {"rms", [](const at_type& at, v x) { return rms_normalise(x) * at[g]; }},
    {"length", [](const at_type& at, v x) { return l2_normalise(x + at[g], 1e-3) * at[f]; }},
    {"mean and deviation", [](const at_type& at, v x) { return normalise(x) * at[g] + at[f]; }},
    {"norm, product, norm",
     [](const at_type& at, v x) { return rms_normalise(matmul(rms_normalise(x), at[s])); }},
    {"columns",
     [](const at_type& at, v x) {
       const v h = matmul(x, at[w]);
       return slice(h, 0, 3) * silu(slice(h, 3, 3)) + slice(slice(h, 2, 5), 1, 3);
     }},
    {"columns of an expression",
     [](const at_type&, v x) { return slice(tanh(x), 1, 2) * slice(x, 0, 2); }},
    {"columns and the whole",
     [](const at_type& at, v x) {
       const v h = matmul(x, at[s]);
       return h * h + slice(exp(h), 0, 1) * slice(h, 2, 1);
     }},
    {"columns in a product",
     [](const at_type& at, v x) {
       const v h = concatenate(x, tanh(x));
       return matmul(slice(h, 1, x.cols()), at[s]) + matmul(slice(h, 0, x.cols()), at[s]);
     }},
    {"all columns, and the whole before them",
     [](const at_type& at, v x) {
       const v h = matmul(x, at[s]), scaled = h * at[g];
       return scaled * slice(h, 0, h.cols());
     }},
    {"columns of a parameter",
     [](const at_type& at, v x) { return slice(x * x, 0, 2) * slice(at[g], 1, 2); }},
    {"concatenate",
     [](const at_type& at, v x) { return concatenate(x * at[g], sigmoid(matmul(x, at[w]))); }},
    {"concatenated and read again",
     [](const at_type& at, v x) {
       const v h = concatenate(x, x * x);
       return matmul(slice(h, 1, x.cols()), at[w]) + row_sum(h * h);
     }},
    {"an expression for two expressions and a product",
     [](const at_type& at, v x) {
       const v a = silu(matmul(x, at[s])), b = a * matmul(a, at[s]);
       return matmul(b * a, at[w]) + row_mean(tanh(b));
     }},
};

TEST_CASE("each operation keeps the laws") {
  for (const one& c : cases) {
    CAPTURE(c.name);
    CHECK(laws::hold(written{c.forward}, laws::rows(37, 5)));
  }
}

TEST_CASE("expressions keep the laws in rows of several blocks") {
  for (const one& c : cases) {
    if (c.name != "softmax of many columns" && c.name != "row max behind a block" &&
        c.name != "concatenate" && c.name != "all columns, and the whole before them")
      continue;
    CAPTURE(c.name);
    laws::setting s = laws::rows(37, 150);
    s.allowed.differences = 1e-6;  // of sums of 150 terms
    CHECK(laws::hold(written{c.forward}, s));
  }
}

}  // namespace
}  // namespace streambp
