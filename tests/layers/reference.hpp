// A layer against the values that PyTorch computed in fp64: tests/reference/README.md.
#pragma once

#include <doctest/doctest.h>

#include <streambp/laws/count_allocations.hpp>
#include <streambp/laws/hold.hpp>

#include "../reference/read.hpp"

namespace streambp {

// y and every gradient of <y, dy>, in chunks of a grain and in plain backpropagation.
template <class Layer>
void check_against(const std::string& name, const Layer& layer) {
  const nlohmann::json file = read_reference(name);
  const auto& configuration = file["configuration"];
  laws::setting s;
  s.samples = configuration.contains("offsets")
                  ? packed(configuration["offsets"].get<std::vector<position>>())
                  : packed::one(configuration["tokens"]);
  s.features = configuration["features"];
  s.twice = false;
  laws::engine_subject<double, Layer, laws::functional<double>> of(layer, {}, s);

  laws::given data;
  data.samples = s.samples;
  data.ids.resize(std::size_t(s.samples.segments()));
  for (const auto& p : file["parameters"]) append_values(p, data.parameters);
  append_values(file["inputs"][0], data.rows);
  append_values(file["inputs"][1], data.c);

  const laws::plan_list plans = of.plans(s.samples, 0);
  CHECK(plans.streamed.chunk_count() >= 3);
  for (const step_plan& p : {plans.plain, plans.streamed}) {
    const laws::outcome o = of.run(p)->step(data);
    CHECK(o.tensors.size() == file["gradients"].size() + 1);
    for (const laws::tensor& t : o.tensors) {
      const std::string tensor = t.name.substr(t.name.find_last_of(". ") + 1);
      const auto& right = file[t.kind == laws::tensor_kind::output ? "outputs" : "gradients"];
      CAPTURE(name);
      CAPTURE(tensor);
      CHECK(error_of(t.data, right.at(tensor).get<std::vector<double>>()) < 1e-9);
    }
  }
}

// What a call throws, in words; "" if it does not.
template <class Call>
std::string words_of(const Call& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

}  // namespace streambp
