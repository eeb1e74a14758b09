#include "everything.hpp"

using namespace streambp;
using namespace streambp::everything;

TEST_CASE("everything in one chain: plans, in fp64") {
  random_plans_have_the_same_bits<double>(short_ragged, 3, 80);
}

TEST_CASE("everything in one chain: plans, in fp64, with completions that share prompts") {
  random_plans_have_the_same_bits<double>(family, 0, 40);
}

TEST_CASE("everything in one chain: packing, in fp64") {
  packing_does_not_matter(trial_on<double>(short_ragged, false), 1e-12);
}

namespace {

// A tensor an entry of the table, in memory of its own, with room between rows.
template <class Scalar>
struct scattered {
  std::vector<std::vector<Scalar>> memory;
  std::vector<view<Scalar>> views;

  // In no order that a buffer has; the room is poison.
  explicit scattered(const parameter_table& table, bool gradients) {
    memory.resize(table.entries.size());
    for (std::size_t k = table.entries.size(); k-- > 0;) {
      const auto& e = table.entries[k];
      const position room = position(k % 3);
      memory[k].assign(std::size_t(e.rows * (e.cols + room)), Scalar(std::nan("")));
    }
    for (std::size_t k = 0; k < table.entries.size(); ++k) {
      const auto& e = table.entries[k];
      if (gradients && e.gradient < 0)
        views.push_back({});
      else
        views.push_back({memory[k].data(), e.rows, e.cols, e.cols + position(k % 3)});
    }
  }
};

}  // namespace

TEST_CASE("parameters and gradients as a list of views have the bits of one buffer") {
  const auto t = trial_on<double>(short_ragged, true);
  const step_plan plan = *t.planner_for(2).search(true);
  const auto wanted = t.step(plan);
  auto e = t.engine_for(plan);
  const parameter_table& table = e.parameters();
  scattered<double> parameters(table, false), gradient(table, true);
  for (std::size_t k = 0; k < table.entries.size(); ++k) {
    const auto& entry = table.entries[k];
    for (position i = 0; i < entry.rows; ++i)
      for (position j = 0; j < entry.cols; ++j) {
        parameters.views[k](i, j) = t.parameters[std::size_t(entry.offset + i * entry.cols + j)];
        if (entry.gradient >= 0) gradient.views[k](i, j) = 0;
      }
  }
  outcome<double> got;
  const auto b = t.data(got);
  const std::int64_t before = laws::allocations;
  got.value = e.add_gradient(parameters.views, b, gradient.views);
  CHECK(laws::allocations == before);
  for (std::size_t k = 0; k < table.entries.size(); ++k)
    if (table.entries[k].gradient >= 0)
      for (position i = 0; i < table.entries[k].rows; ++i)
        for (position j = 0; j < table.entries[k].cols; ++j)
          got.gradient.push_back(gradient.views[k](i, j));
  CHECK(same_bits(got, wanted));
  CHECK(e.value(parameters.views, b) == wanted.value);

  const std::vector<view<const double>> read(parameters.views.begin(), parameters.views.end());
  CHECK(e.value(read, b) == wanted.value);
}
