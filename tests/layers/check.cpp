// Members that were changed after a layer was made are checked when a model is made of it.
#include <streambp/layers/check.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/schedule/instances.hpp>
#include <streambp/streambp.hpp>
#include <string>

using namespace streambp;

namespace {

template <class Layer>
std::string refusal(const Layer& layer, position features) {
  try {
    const instance_list<Layer> list(layer, features);
  } catch (const shape_error& e) {
    return e.what();
  }
  return "nothing";
}

template <class Layer, class Change>
std::string changed(Layer layer, const Change& change) {
  CHECK(refusal(layer, 8) == "nothing");
  change(layer);
  return refusal(layer, 8);
}

}  // namespace

TEST_CASE("tables of a layer are as long as its options ask for") {
  const auto rotary = causal_attention({.features = 8, .heads = 2, .rotary = 1e4});
  CHECK(changed(rotary, [](auto& l) { l.frequencies.pop_back(); }) ==
        "attention: 1 frequencies for 2 pairs of features that turn");
  CHECK(changed(rotary, [](auto& l) { l.options.rotary = 0; }) ==
        "attention: 2 frequencies for 0 pairs of features that turn");
  CHECK(changed(retention({.features = 8, .heads = 2}), [](auto& l) { l.logarithms.clear(); }) ==
        "retention: 0 frequencies and 0 decays; its options ask for 0 and 2");
}

TEST_CASE("options that were changed are those that a constructor would take") {
  CHECK(changed(causal_attention({.features = 8}), [](auto& l) { l.options.window = -3; }) ==
        "attention: a window is for causal attention, and not negative");
  CHECK(changed(causal_attention({.features = 8}), [](auto& l) { l.options.heads = 0; }) ==
        "attention: heads is 0, it must be positive");
  CHECK(changed(causal_attention({.features = 8}), [](auto& l) { l.options.softcap = NAN; }) ==
        "attention: softcap is nan, it must be finite");
  CHECK(changed(linear(8, 4), [](auto& l) { l.out = -1; }) ==
        "linear: out is -1, it must be positive");
  CHECK(changed(rms_norm(8), [](auto& l) { l.epsilon = -1; }) ==
        "rms_norm: epsilon is -1, it must be at least 0");
  CHECK(changed(layer_norm(8), [](auto& l) { l.epsilon = NAN; }) ==
        "layer_norm: epsilon is nan, it must be finite");
  CHECK(changed(time_norm(8), [](auto& l) { l.epsilon = -1; }) ==
        "time_norm: epsilon is -1, it must be at least 0");
  CHECK(changed(swiglu(8, 4), [](auto& l) { l.inner = 0; }).find("inner is 0") !=
        std::string::npos);
  CHECK(changed(gated_recurrence(8, 4), [](auto& l) { l.states = -5; }).find("states is -5") !=
        std::string::npos);
  CHECK(changed(lstm(8, 4), [](auto& l) { l.units = 0; }) ==
        "lstm: units is 0, it must be positive");
  CHECK(changed(gru(8, 4), [](auto& l) { l.units = 0; }) == "gru: units is 0, it must be positive");
  CHECK(changed(causal_convolution(8, 3), [](auto& l) { l.taps = 0; }).find("taps is 0") !=
        std::string::npos);
  CHECK(changed(dropout(0.5), [](auto& l) { l.rate = 2; }) == "dropout: rate 2 is not in [0, 1)");
  CHECK(changed(mixture_of_experts({.features = 8, .inner = 4, .experts = 3, .top = 2}),
                [](auto& l) { l.options.top = 5; }) == "experts: the top 5 of 3 experts");
  CHECK(changed(state_space({.features = 8, .head_width = 4, .states = 4}), [](auto& l) {
          l.options.taps = 0;
        }).find("taps is 0") != std::string::npos);
  CHECK(changed(embedding(9, 8), [](auto& l) { l.scale = NAN; }) ==
        "embedding: scale is nan, it must be finite");
}
