// Steps and training on a device whose memory the host cannot touch have the bits of the CPU's.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

#include "../core/lengths.hpp"
#include "../unreachable_device.hpp"

using namespace streambp;

namespace {

const geometry grains{8, 16};

template <class Scalar>
struct outcome {
  double value = 0, again = 0;
  std::vector<Scalar> gradient, d_rows, d_initial, last_results, trained;
  std::vector<double> log_probabilities;
  std::string refused, overflowed;  // in words
  big_count flops;
};

void expect_same(const outcome<float>& a, const outcome<float>& b) {
  CHECK(std::memcmp(&a.value, &b.value, sizeof a.value) == 0);
  CHECK(std::memcmp(&a.again, &a.value, sizeof a.value) == 0);
  CHECK(std::memcmp(&b.again, &b.value, sizeof a.value) == 0);
  const auto same = [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0;
  };
  CHECK(same(a.gradient, b.gradient));
  CHECK(same(a.d_rows, b.d_rows));
  CHECK(same(a.d_initial, b.d_initial));
  CHECK(same(a.last_results, b.last_results));
  CHECK(same(a.trained, b.trained));
  CHECK(a.refused == b.refused);
  CHECK(a.refused.find("is inf at row 6") != std::string::npos);
  CHECK(a.overflowed == b.overflowed);
  CHECK(a.overflowed.find("the first rows that are not finite are those that ") !=
        std::string::npos);
  CHECK(same(a.log_probabilities, b.log_probabilities));
}

std::vector<float> numbers(position n, double mean, double width) {
  dice draw{std::uint64_t(n) + 3};
  std::vector<float> all;
  for (position i = 0; i < n; ++i)
    all.push_back(float(mean + width * (double(draw(2001)) / 1000 - 1)));
  return all;
}
std::vector<float> parameters_of(const parameter_table& table) {
  std::vector<float> all;
  for (const auto& p : table.entries)
    for (const float x : numbers(p.size(), p.initial.mean, 0.4)) all.push_back(x);
  return all;
}
std::vector<std::int32_t> tokens_of(const packed& samples, position vocabulary) {
  std::vector<std::int32_t> all;
  for (position t = 0; t < samples.tokens(); ++t)
    all.push_back(std::int32_t((7 * t * t + 3 * t) % vocabulary));
  return all;
}

// An array that the device's primitives reach.
template <class Device>
struct array {
  std::vector<float> data;
  explicit array(std::vector<float> of) : data(std::move(of)) {}
  std::span<float> span() { return data; }
  std::vector<float> copy() const { return data; }
};
template <>
struct array<unreachable::device<float>> : unreachable::buffer<float> {
  explicit array(const std::vector<float>& of)
      : unreachable::buffer<float>(std::span<const float>(of)) {}
};

// Memory, carries, totals, a side loss, randomness, a prefix: a bit of each, of every layer.
auto rows_model() {
  const attention_options heads{.features = 8, .heads = 2};
  return residual(layer_norm(8) | bidirectional_attention(heads)) |
         residual(rms_norm(8) | gated_recurrence(8, 6) | dropout(0.25)) | time_norm(8) |
         residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2, .rotary = 1e3})) |
         residual(causal_convolution(8, 3, true) | swiglu(8, 5)) |
         residual(gru(8, 5) | linear(5, 6) | gelu() | lstm(6, 8)) |
         residual(rms_norm(8) | retention({.features = 8, .heads = 2})) |
         residual(state_space({.features = 8, .inner = 8, .head_width = 4, .states = 3})) |
         residual(mixture_of_experts(
             {.features = 8, .inner = 4, .experts = 3, .top = 2, .balance = 0.1, .z_loss = 0.1})) |
         rms_norm(8) | linear(8, 7);
}

// Under the plan that keeps everything, or under the one of least bytes.
template <class Device, class Model, class Loss>
outcome<float> step_of(bool streamed, const Model& model, const Loss& loss) {
  const packed samples = packed_lengths({1, 40, 0, 23});
  plan_options options;
  options.features = 8;
  options.prefix = 2;
  options.input_gradient = true;
  options.threads = 2;
  if (streamed) options.chunk = options.head_chunk = 16, options.stage = 1;
  options.grains = grains;
  planner<Device, Model, Loss> plans(model, samples, options);
  const step_plan p = streamed ? *plans.search(true) : plans.plain();
  basic_engine<Device, Model, Loss> e(p, model, loss);

  array<Device> parameters(parameters_of(e.parameters())),
      rows(numbers(samples.tokens() * 8, 0, 1)), initial(numbers(e.initial_size(), 0, 1)),
      gradient(std::vector<float>(std::size_t(e.parameters().gradients))),
      d_rows(std::vector<float>(std::size_t(samples.tokens() * 8))),
      d_initial(std::vector<float>(std::size_t(e.initial_size())));
  const auto labels = tokens_of(samples, 7);
  batch<float> b;
  b.labels = labels;
  b.rows = {rows.span().data(), samples.tokens(), 8};
  b.d_rows = {d_rows.span().data(), samples.tokens(), 8};
  b.initial = initial.span();
  b.d_initial = d_initial.span();
  outcome<float> out;
  out.value = e.add_gradient(parameters.span(), b, gradient.span());
  out.flops = e.flops();
  CHECK(out.flops == p.flops);
  out.again = e.value(parameters.span(), b);
  array<Device> last(std::vector<float>(std::size_t(samples.segments() * 7)));
  e.last_results(parameters.span(), b, {last.span().data(), samples.segments(), 7});
  out.last_results = last.copy();
  out.log_probabilities.resize(std::size_t(samples.tokens()));
  e.log_probabilities(parameters.span(), b, out.log_probabilities);
  out.gradient = gradient.copy();
  out.d_rows = d_rows.copy();
  out.d_initial = d_initial.copy();

  const auto refused = [&](float at_last) {
    auto some = parameters.copy();
    some.back() = at_last;
    try {
      e.add_gradient(array<Device>(some).span(), b, gradient.span());
    } catch (const error& said) {
      return std::string(said.what());
    }
    return std::string();
  };
  out.refused = refused(std::numeric_limits<float>::infinity());
  out.overflowed = refused(3e38f);

  adamw<float, Device> optimizer(e.parameters());
  Device on(1);
  for (int t = 0; t < 3; ++t) {
    for (auto* added : {&gradient, &d_rows, &d_initial})
      zero(on, view<float>{added->span().data(), 1, position(added->span().size())});
    const auto g = gradient.span();
    const double value = e.add_gradient(parameters.span(), b, g);
    CHECK((t == 0) == (value == out.value));
    optimizer.update(parameters.span(), g, 0.01, clip_factor(gradient_norm<float, Device>(g), 1));
  }
  CHECK(e.value(parameters.span(), b) < out.value);
  out.trained = parameters.copy();
  return out;
}

}  // namespace

TEST_CASE("a host that touches such memory does not live on") {
  const unreachable::buffer<float> rows(4);
  for (const bool touches : {false, true}) {
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::signal(SIGSEGV, SIG_DFL);
      if (touches) const_cast<volatile float&>(rows.span()[2]) = 1;
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) == touches);
  }
  for (const float x : rows.copy()) CHECK(std::isnan(x));
}

TEST_CASE("steps on memory that the host cannot touch have the CPU's bits") {
  using far = unreachable::device<float>;
  static_assert(primitives::computing_device<far> && !far::is_host);
  const auto model = rows_model();
  const auto plain = step_of<far>(false, model, cross_entropy{});
  expect_same(plain, step_of<cpu::device<float>>(false, model, cross_entropy{}));
  expect_same(step_of<far>(true, model, cross_entropy{}), plain);
}

TEST_CASE("so have those of two heads") {
  using far = unreachable::device<float>;
  const auto model = residual(rms_norm(8) | gated_recurrence(8, 6)) |
                     heads(linear(8, 7), rms_norm(8) | linear(8, 7));
  const auto loss = losses(cross_entropy{}, cross_entropy{.z_loss = 0.1});
  const auto plain = step_of<far>(false, model, loss);
  expect_same(plain, step_of<cpu::device<float>>(false, model, loss));
  expect_same(step_of<far>(true, model, loss), plain);
}
