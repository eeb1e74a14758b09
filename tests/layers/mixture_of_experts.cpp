#include <streambp/layers/mixture_of_experts.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("a mixture of experts keeps the laws") {
  CHECK(laws::hold(mixture_of_experts({.features = 8, .inner = 5, .experts = 4, .top = 2}),
                   laws::rows(37, 8)));
  CHECK(laws::hold(mixture_of_experts({.features = 6,
                                       .inner = 3,
                                       .experts = 5,
                                       .top = 1,
                                       .normalised = false,
                                       .kind = activation::gelu}),
                   laws::rows(53, 6)));
  CHECK(laws::hold(mixture_of_experts({.features = 8, .inner = 4, .experts = 3, .top = 3}),
                   laws::rows(37, 8)));
  CHECK(laws::hold(mixture_of_experts({.features = 8, .inner = 4}), laws::rows(37, 8)));
}

// They are functions of sums over the whole batch, which is then no sum of its samples.
TEST_CASE(
    "a mixture of experts with side losses keeps the laws, of which one does not speak of it") {
  const auto r = laws::hold(
      mixture_of_experts(
          {.features = 8, .inner = 5, .experts = 4, .top = 2, .balance = 2, .z_loss = 0.3}),
      laws::rows(37, 8));
  CHECK(r);
  CHECK(r.unjudged() == std::vector<laws::law>{laws::law::batch_independence});
}

TEST_CASE("without side losses a row of a mixture does not depend on what it is packed with") {
  const auto judge = [](auto scalar) {
    const mixture_of_experts layer({.features = 8, .inner = 5, .experts = 4, .top = 2});
    const laws::setting s = laws::rows(37, 8);
    using scalar_type = decltype(scalar);
    laws::engine_subject<scalar_type, mixture_of_experts, laws::functional<scalar_type>> of(layer,
                                                                                            {}, s);
    laws::report r;
    of.into = &r;
    laws::check_batch_independence(r, of, laws::data_for(of, s, 0), of.plans(s.samples, 0).streamed,
                                   s.allowed);
    return r;
  };
  CHECK(judge(0.0));
  CHECK(judge(0.0f));
}

mixture_of_experts from(const nlohmann::json& c) {
  return mixture_of_experts({.features = c["features"],
                             .inner = c["inner"],
                             .experts = c["experts"],
                             .top = c["top"],
                             .normalised = c["normalised"],
                             .balance = c["balance"],
                             .z_loss = c["z_loss"]});
}

// The value is <y, dy> and the side losses, each once, in every plan.
void check_value(const std::string& name) {
  const nlohmann::json file = read_reference(name);
  laws::setting s{packed::one(file["configuration"]["tokens"]), file["configuration"]["features"]};
  s.twice = false;
  laws::engine_subject<double, mixture_of_experts, laws::functional<double>> of(
      from(file["configuration"]), {}, s);
  laws::given data;
  data.samples = s.samples;
  data.ids = {0};
  for (const auto& p : file["parameters"]) append_values(p, data.parameters);
  append_values(file["inputs"][0], data.rows);
  append_values(file["inputs"][1], data.c);
  double right = file["outputs"]["side_loss"][0];
  const auto y = file["outputs"]["y"].get<std::vector<double>>();
  for (std::size_t i = 0; i < y.size(); ++i) right += y[i] * data.c[i];
  const laws::plan_list plans = of.plans(s.samples, 0);
  for (const step_plan& p : {plans.plain, plans.streamed}) {
    CHECK(of.run(p)->step(data).value == doctest::Approx(right).epsilon(1e-12));
    CHECK(of.run(p)->value(data) == doctest::Approx(right).epsilon(1e-12));
  }
}

TEST_CASE("a mixture of experts is PyTorch's, side losses included") {
  for (const char* name : {"experts", "experts_top1"}) {
    check_against(name, from(read_reference(name)["configuration"]));
    check_value(name);
  }
}

TEST_CASE("a mixture of experts names what does not fit") {
  CHECK(words_of([] { mixture_of_experts({.features = 8, .inner = 4, .experts = 3, .top = 4}); }) ==
        "experts: the top 4 of 3 experts");
  CHECK(words_of([] { mixture_of_experts({.inner = 4}); }) ==
        "experts: features is 0, it must be positive");
  CHECK(words_of([] { mixture_of_experts({.features = 8}); }) ==
        "experts: inner is 0, it must be positive");
  CHECK(words_of([] { mixture_of_experts({.features = 8, .inner = 4, .top = 0}); }) ==
        "experts: top is 0, it must be positive");
  CHECK(words_of([] {
          laws::hold(mixture_of_experts({.features = 8, .inner = 4}), laws::rows(37, 6));
        }) == "experts: x has 6 features, the layer takes 8");
}

}  // namespace
}  // namespace streambp
