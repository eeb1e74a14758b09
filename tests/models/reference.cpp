// Whole models against PyTorch in fp64: see tests/reference/README.md.
#include <doctest/doctest.h>

#include <streambp/streambp.hpp>

#include "../reference/read.hpp"

using namespace streambp;

namespace {

struct reference {
  nlohmann::json all;
  explicit reference(const std::string& name) : all(read_reference(name)) {}

  template <class T>
  std::vector<T> list(const char* key) const {
    return all["configuration"][key].get<std::vector<T>>();
  }
  std::vector<double> output(const char* key) const {
    return all["outputs"][key].get<std::vector<double>>();
  }
  std::vector<double> parameters() const {
    std::vector<double> values;
    for (const auto& p : all["parameters"]) append_values(p, values);
    return values;
  }
};

bool close(std::span<const double> got, const std::vector<double>& expected) {
  return error_of({got.begin(), got.end()}, expected) <= 1e-9;
}

template <class Model, class Loss>
void agrees(const char* name, const Model& model, const Loss& loss) {
  INFO("case ", name);
  const reference r(name);
  const auto tokens = r.list<std::int32_t>("ids"), labels = r.list<std::int32_t>("labels");
  const packed samples(r.list<position>("offsets"));
  batch<double> data;
  data.tokens = tokens;
  data.labels = labels;
  std::vector<double> weights;
  if (!r.all["inputs"].empty()) append_values(r.all["inputs"][0], weights);
  data.weights = weights;
  const std::vector<double> parameters = r.parameters();
  for (const plan_options& o :
       {plan_options{.grains = {8, 8}},
        plan_options{.threads = 2, .chunk = 16, .stage = 1, .grains = {8, 8}}}) {
    engine e(plan<double>(model, loss, samples, o), model, loss);
    const auto& table = e.parameters();
    REQUIRE(table.entries.size() == r.all["parameters"].size());
    const auto [value, gradient] = e.value_and_gradient(parameters, data);
    CHECK(close({&value, 1}, r.output("loss")));
    std::vector<double> logs(tokens.size());
    e.log_probabilities(parameters, data, logs);
    CHECK(close(logs, r.output("log_probabilities")));
    for (std::size_t i = 0; i < table.entries.size(); ++i) {
      const std::string theirs = r.all["parameters"][i]["name"];
      INFO("gradient of ", theirs);
      const auto& own = table.entries[i];
      CHECK(close(std::span(gradient).subspan(std::size_t(own.gradient), std::size_t(own.size())),
                  r.all["gradients"][theirs].get<std::vector<double>>()));
    }
  }
}

auto trunk_of(position vocabulary, position width, position inner) {
  const auto block =
      residual(rms_norm(width) |
               causal_attention({.features = width, .heads = 4, .kv_heads = 2, .rotary = 1e4})) |
      residual(rms_norm(width) | swiglu(width, inner));
  return embedding(vocabulary, width) | repeat(2, block) | rms_norm(width);
}
const auto trunk = trunk_of(19, 16, 24);
const auto llama = trunk | linear(16, 19);

// |a - b| / |b|, Euclidean.
double distance(const auto& a, const auto& b) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    off += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    all += double(b[i]) * double(b[i]);
  }
  return std::sqrt(off / all);
}

template <class S>
auto step_of(const auto& model, const plan_options& o, const packed& samples,
             std::span<const std::int32_t> ids, const std::vector<float>& parameters) {
  engine e(plan<S>(model, cross_entropy{}, samples, o), model, cross_entropy{});
  const std::vector<S> exactly(parameters.begin(), parameters.end());
  return e.value_and_gradient(exactly, {.tokens = ids, .labels = ids});
}

}  // namespace

TEST_CASE("reference: cross entropy and its options") {
  agrees("model", llama, cross_entropy{});
  agrees("model_label_smoothing", llama, cross_entropy{.label_smoothing = 0.1});
  agrees("model_z_loss", llama, cross_entropy{.z_loss = 0.01});
  agrees("model_softcap", llama, cross_entropy{.logits = {0.5, 5}});
  agrees("model_mean_over_samples", llama, cross_entropy{.average = over::samples});
  agrees("model_sum", llama, cross_entropy{.average = over::nothing});
  agrees("model_weights", llama, cross_entropy{});
  agrees("model_everything", llama,
         cross_entropy{.label_smoothing = 0.1, .z_loss = 0.01, .logits = {0.5, 5}});
}

TEST_CASE("reference: a tied head") {
  agrees("model_tied", trunk | tied_linear{16, 19}, cross_entropy{});
}

TEST_CASE("reference: direct preference optimisation") {
  const auto references = reference("model_dpo").list<double>("reference_log_probabilities");
  agrees("model_dpo", llama, direct_preference{{{0, 1}, {2, 3}}, references, 0.3});
}

TEST_CASE("reference: last rows of each sample") {
  const reference r("model");
  const auto logits = r.output("logits");
  const packed samples(r.list<position>("offsets"));
  const auto tokens = r.list<std::int32_t>("ids");
  engine e(plan<double>(llama, cross_entropy{}, samples, {.grains = {8, 8}}), llama,
           cross_entropy{});
  const std::vector<double> parameters = r.parameters();
  std::vector<double> z(4 * 19);
  batch<double> data;
  data.tokens = tokens;
  e.last_results(parameters, data, {z.data(), 4, 19});
  for (const position s : {0, 1, 3}) {
    const auto last = std::size_t(samples.segment(s).last - 1) * 19;
    CHECK(close(std::span(z).subspan(std::size_t(s) * 19, 19),
                {logits.begin() + position(last), logits.begin() + position(last) + 19}));
  }
}

TEST_CASE(
    "reference: fp32 is at most twice as far from fp64 as PyTorch's, in any number of chunks") {
  const reference r("precision");
  const packed samples(r.list<position>("offsets"));
  const auto ids = r.list<std::int32_t>("ids");
  const auto model = trunk_of(61, 64, 96) | linear(64, 61);
  const std::vector<double> drawn = r.parameters();
  const std::vector<float> parameters(drawn.begin(), drawn.end());
  const auto [value, exact] = step_of<double>(model, {}, samples, ids, parameters);
  const parameter_table table =
      engine(plan(model, cross_entropy{}, samples), model, cross_entropy{}).parameters();
  // 64 sums of 16 tokens to a gradient; chunks of 16; then as anyone would plan it.
  for (const plan_options& o :
       {plan_options{.grains = {16, 16}}, plan_options{.chunk = 16, .stage = 1, .grains = {16, 16}},
        plan_options{}}) {
    const auto [approximate, single] = step_of<float>(model, o, samples, ids, parameters);
    CHECK(std::abs(approximate - value) <= 2 * value * r.all["errors"]["loss"].get<double>());
    for (std::size_t i = 0; i < table.entries.size(); ++i) {
      const auto& own = table.entries[i];
      const std::string theirs = r.all["parameters"][i]["name"];
      const auto part = [&](const auto& of) {
        return std::span(of).subspan(std::size_t(own.gradient), std::size_t(own.size()));
      };
      const double error = distance(part(single), part(exact));
      CAPTURE(theirs);
      CAPTURE(o.grains.grain);
      CHECK(error <= 2 * r.all["errors"][theirs].get<double>());
    }
  }
}
