// Whole models against PyTorch in fp64: see tests/reference/README.md.
#include <streambp/engine/cpu_engine.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <streambp/streambp.hpp>

#ifndef STREAMBP_REFERENCE_DIR
#define STREAMBP_REFERENCE_DIR "tests/reference"
#endif

using namespace streambp;

namespace {

struct reference {
  nlohmann::json all;
  explicit reference(const std::string& name) {
    std::ifstream file(std::string(STREAMBP_REFERENCE_DIR) + "/" + name + ".json");
    REQUIRE_MESSAGE(file, "no file ", name, ".json in " STREAMBP_REFERENCE_DIR);
    all = nlohmann::json::parse(file);
  }
  template <class T>
  std::vector<T> list(const char* key) const {
    return all["configuration"][key].get<std::vector<T>>();
  }
  std::vector<double> output(const char* key) const {
    return all["outputs"][key].get<std::vector<double>>();
  }
};

void fill(std::span<double> to, const nlohmann::json& from) {
  const auto seed = from["seed"].get<std::int64_t>();
  const double scale = from["scale"], offset = from["offset"];
  for (std::int64_t i = 0; i < std::int64_t(to.size()); ++i)
    to[std::size_t(i)] =
        offset +
        scale * std::sin(double((31 * i * i + (7919 + 613 * seed) * i + 104729 * seed) % 10007));
}

// Within 1e-9 of the largest entry.
bool close(std::span<const double> got, const std::vector<double>& expected) {
  double largest = 0, error = 0;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - expected[i]);
    error = off <= error ? error : off;  // NaN counts
  }
  return error <= 1e-9 * largest;
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
  if (!r.all["inputs"].empty()) {
    weights.resize(tokens.size());
    fill(weights, r.all["inputs"][0]);
    data.weights = weights;
  }
  for (const plan_options& o :
       {plan_options{.grains = {8, 8}},
        plan_options{.threads = 2, .chunk = 16, .stage = 1, .grains = {8, 8}}}) {
    engine e(plan<double>(model, loss, samples, o), model, loss);
    const auto& table = e.parameters();
    std::vector<double> parameters(std::size_t(table.parameters));
    REQUIRE(table.entries.size() == r.all["parameters"].size());
    for (std::size_t i = 0; i < table.entries.size(); ++i)
      fill(std::span(parameters)
               .subspan(std::size_t(table.entries[i].offset), std::size_t(table.entries[i].size())),
           r.all["parameters"][i]);

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

const auto trunk =
    embedding(19, 16) |
    repeat(2,
           residual(rms_norm(16) |
                    causal_attention({.features = 16, .heads = 4, .kv_heads = 2, .rotary = 1e4})) |
               residual(rms_norm(16) | swiglu(16, 24))) |
    rms_norm(16);
const auto llama = trunk | linear(16, 19);

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
  std::vector<double> parameters(std::size_t(e.parameters().parameters)), z(4 * 19);
  for (std::size_t i = 0; i < e.parameters().entries.size(); ++i) {
    const auto& own = e.parameters().entries[i];
    fill(std::span(parameters).subspan(std::size_t(own.offset), std::size_t(own.size())),
         r.all["parameters"][i]);
  }
  batch<double> data;
  data.tokens = tokens;
  e.last_results(parameters, data, {z.data(), 4, 19});
  for (const position s : {0, 1, 3}) {
    const auto last = std::size_t(samples.segment(s).last - 1) * 19;
    CHECK(close(std::span(z).subspan(std::size_t(s) * 19, 19),
                {logits.begin() + position(last), logits.begin() + position(last) + 19}));
  }
}
