// Completions that name a prompt as their parent: the gradients of the full samples, the work of
// one prompt.
#include <doctest/doctest.h>

#include <cmath>
#include <streambp/streambp.hpp>
#include <vector>

using namespace streambp;

namespace {

constexpr position vocabulary = 19, prompt = 21;
const std::vector<position> completions{7, 1, 12, 9, 0, 3, 16, 8};

template <class Model>
struct run {
  double value;
  std::vector<double> gradient;
  big_count flops;
  std::vector<double> log_probabilities;
};

std::int32_t token_at(position i, position seed) {
  return std::int32_t((i * i * 7 + 3 * i + 5 * seed) % vocabulary);
}

struct text {
  std::vector<position> offsets{0}, parents;
  std::vector<std::int32_t> tokens, labels;

  void add(position count, position first, position seed, bool scored) {
    for (position i = 0; i < count; ++i) {
      tokens.push_back(token_at(first + i, seed));
      labels.push_back(scored ? tokens.back() : -100);
    }
  }
  void close(position parent) {
    offsets.push_back(position(tokens.size()));
    parents.push_back(parent);
  }
};

text shared() {
  text t;
  t.add(prompt, 0, 0, false);
  t.close(-1);
  for (std::size_t c = 0; c < completions.size(); ++c) {
    t.add(completions[c], 100, position(c) + 1, true);
    t.close(0);
  }
  return t;
}

text full() {
  text t;
  for (std::size_t c = 0; c < completions.size(); ++c) {
    t.add(prompt, 0, 0, false);
    t.add(completions[c], 100, position(c) + 1, true);
    t.close(-1);
  }
  return t;
}

template <class Model>
run<Model> gradient_of(const Model& model, const text& t, position chunk) {
  const packed samples(t.offsets, t.parents);
  const auto p = plan<double>(model, cross_entropy{}, samples, {.chunk = chunk, .grains = {8, 16}});
  engine step(p, model, cross_entropy{});
  std::vector<double> parameters(std::size_t(step.parameters().parameters));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i] = 0.3 * std::sin(double((31 * i * i + 7919 * i) % 10007));
  batch<double> data;
  data.tokens = t.tokens;
  data.labels = t.labels;
  auto [value, gradient] = step.value_and_gradient(parameters, data);
  run<Model> r{value, gradient, step.flops(), std::vector<double>(t.tokens.size())};
  step.log_probabilities(parameters, data, r.log_probabilities);
  return r;
}

template <class Model>
void compare(const Model& model) {
  const text one = shared(), many = full();
  const auto want = gradient_of(model, many, 1000);
  for (const position chunk : {16, 32, 1000}) {
    const auto got = gradient_of(model, one, chunk);
    CHECK(got.value == doctest::Approx(want.value).epsilon(1e-12));
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < got.gradient.size(); ++i) {
      largest = std::max(largest, std::abs(want.gradient[i]));
      worst = std::max(worst, std::abs(got.gradient[i] - want.gradient[i]));
    }
    CHECK(worst < 1e-12 * largest);
    // Each completion's tokens have the log-probabilities that they have behind a prompt of their
    // own.
    for (std::size_t c = 0; c < completions.size(); ++c)
      for (position i = 0; i < completions[c]; ++i)
        CHECK(got.log_probabilities[std::size_t(one.offsets[c + 1] + i)] ==
              doctest::Approx(want.log_probabilities[std::size_t(many.offsets[c] + prompt + i)])
                  .epsilon(1e-12));
  }
}

const auto attend = residual(
    rms_norm(16) | causal_attention({.features = 16, .heads = 4, .kv_heads = 2, .rotary = 1e4}));
const auto windowed =
    residual(rms_norm(16) | causal_attention({.features = 16, .heads = 2, .window = 5}));
const auto recur = residual(rms_norm(16) | gated_recurrence(16, 12));
const auto mlp = residual(rms_norm(16) | swiglu(16, 24));

}  // namespace

TEST_CASE("completions of one prompt have the gradients of the full samples") {
  const auto head = rms_norm(16) | linear(16, vocabulary);
  compare(embedding(vocabulary, 16) | repeat(2, attend | mlp) | head);
  compare(embedding(vocabulary, 16) | windowed | recur | attend | mlp | head);
}

TEST_CASE("a shared prompt is computed once") {
  // A model that does the same for every row: FLOPs count rows.
  const auto model =
      embedding(vocabulary, 16) | repeat(2, mlp) | rms_norm(16) | linear(16, vocabulary);
  const text one = shared(), many = full();
  const auto once = gradient_of(model, one, 1000), often = gradient_of(model, many, 1000);
  CHECK(once.flops * position(many.tokens.size()) == often.flops * position(one.tokens.size()));
}

TEST_CASE("a parent stands before its children, holds a row and has no parent") {
  CHECK_THROWS_WITH_AS(
      packed({0, 4, 8}, {1, -1}),
      "packed: segment 0 names parent 1; a parent is packed before its children, or "
      "-1 for none",
      shape_error);
  CHECK_THROWS_WITH_AS(packed({0, 4, 8, 9}, {-1, 0, 1}),
                       "packed: segment 2 names parent 1, which has a parent itself", shape_error);
  CHECK_THROWS_WITH_AS(packed({0, 0, 8}, {-1, 0}),
                       "packed: segment 1 names parent 0, which holds no row", shape_error);
  CHECK_THROWS_WITH_AS(packed({0, 4, 8}, {-1}), "packed: 1 parents for 2 segments", shape_error);
}
