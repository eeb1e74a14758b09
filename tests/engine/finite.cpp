// A loss or a gradient that is not finite: where it begins, by stage, layer and row.
#include <streambp/engine/finite.hpp>

#include <limits>

#include "models.hpp"
#include "trial.hpp"

using namespace streambp;

namespace {

// Gives `number` at one row of the packed axis, in its forward or in its backward.
struct breaking {
  static constexpr bool backward_reads_input = false, backward_reads_output = false;
  position forward_row, backward_row;
  double number = std::numeric_limits<double>::quiet_NaN();

  void forward(auto& at, auto x, auto y) const {
    copy(at.on, x, y);
    for (position r = 0; r < y.rows; ++r)
      if (y.data && at.chunk.rows.first + r == forward_row) y(r, 1) = number;
  }
  void backward(auto& at, auto, auto, auto dy, auto dx) const {
    add(at.on, dy, dx);
    for (position r = 0; r < dx.rows; ++r)
      if (dx.data && at.chunk.rows.first + r == backward_row) dx(r, 2) = number;
  }
};

auto trial_with(breaking layer) {
  return trial_of<double>(repeat(1, residual(rms_norm(6) | linear(6, 6))) |
                              repeat(2, linear(6, 6) | layer) | linear(6, 5),
                          cross_entropy{}, short_ragged, {.features = 6, .grains = small_grains});
}

template <class Trial, class Call>
std::string said(const Trial& t, const step_plan& p, const Call& call) {
  auto e = t.engine_for(p);
  try {
    call(e);
  } catch (const numeric_error& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace

TEST_CASE("rows that are not finite are found by stage, layer and row, in every plan") {
  const auto t = trial_with({77, -1});
  std::vector<double> gradient(std::size_t(t.list.table.gradients));
  auto all = t.planner_for();
  for (const step_plan& p : {all.plain(), all.checkpointing(), *all.search(true)}) {
    const position stages = position(p.choice.stages.size());
    const auto expected = sentence(
        "the loss is nan; the first rows that are not finite are those that blocks_2.0.linear "
        "gives "
        "(stage ",
        stages == 1   ? 0
        : stages == 3 ? 1
                      : -1,
        "): nan at row 77 (sample ");
    const auto by_gradient =
        said(t, p, [&](auto& e) { e.add_gradient(t.parameters, t.data(), gradient); });
    CHECK(by_gradient.find("nan at row 77 (sample ") != std::string::npos);
    CHECK(by_gradient.find("those that ") != std::string::npos);
    CHECK(by_gradient.ends_with("column 1; the gradient is incomplete, begin it again"));
    const auto by_value = said(t, p, [&](auto& e) { e.value(t.parameters, t.data()); });
    CHECK(by_value.starts_with("the loss is nan; the first rows that are not finite are those"));
    CHECK(by_value.ends_with("column 1"));
  }
}

TEST_CASE("a backward that is not finite is named by the parameter that it reached first") {
  const auto t = trial_with({-1, 40});
  std::vector<double> gradient(std::size_t(t.list.table.gradients));
  const step_plan p = t.planner_for().plain();
  const auto words = said(t, p, [&](auto& e) { e.add_gradient(t.parameters, t.data(), gradient); });
  CHECK(words.starts_with("the gradient of blocks_2.1.linear.weight is nan at row "));
  CHECK(words.find("the rows of every layer are finite, so it comes from the loss, from a "
                   "backward, or stood in the gradient before; the gradient is incomplete, begin "
                   "it again") != std::string::npos);
  CHECK(said(t, p, [&](auto& e) { e.value(t.parameters, t.data()); }) == "");
}

TEST_CASE("finite parameters that overflow are found, and the next step is right") {
  auto t =
      trial_of<double>(language_model(), cross_entropy{}, short_ragged, {.grains = small_grains});
  const step_plan p = *t.planner_for().search(true);
  auto e = t.engine_for(p);
  const auto [value, gradient] = e.value_and_gradient(t.parameters, t.data());
  auto large = t.parameters;
  const auto& up = t.list.table["blocks.0.mlp.up"];
  for (position i = 0; i < up.size(); ++i) large[std::size_t(up.offset + i)] = 1e308;
  std::string words;
  try {
    e.value_and_gradient(large, t.data());
  } catch (const numeric_error& refused) {
    words = refused.what();
  }
  CHECK(words.find("those that blocks.0.") != std::string::npos);
  CHECK(words.find("mlp") != std::string::npos);
  const auto [again, same] = e.value_and_gradient(t.parameters, t.data());
  CHECK(again == value);
  CHECK(same_bits(same, gradient));
}
