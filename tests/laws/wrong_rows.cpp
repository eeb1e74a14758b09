#include "wrong_rows.hpp"

#include "broken.hpp"

namespace streambp {
namespace {

laws::report tried(row_fault fault) { return laws::hold(wrong_rows{4, fault}, laws::rows(37, 4)); }

TEST_CASE("a right layer keeps every law") {
  const laws::report r = tried(row_fault::none);
  CHECK(r);
  CHECK(r.counted_allocations == laws::counts_allocations());
  CHECK(r.plans() > 60);
  CHECK(r.steps() > 150);
  CHECK(r.largest_error > 0);
  CHECK(r.largest_error < 1e-9);
}

TEST_CASE("each fault of a row layer breaks the law that speaks of it") {
  struct {
    row_fault fault;
    const char* law;
  } const cases[] = {
      {row_fault::wrong_sign, "central differences"},
      {row_fault::assigns, "gradients are added"},
      {row_fault::sums_by_chunk, "plan-independence"},
      {row_fault::depends_on_chunk, "plan-independence"},
      {row_fault::depends_on_axis, "batch-independence"},
      {row_fault::mixes_rows, "the declaration is true"},
      {row_fault::counts_calls, "recomputation has no side effects"},
      {row_fault::allocates, "memory is what was planned"},
      {row_fault::sinks_deep, "memory is what was planned"},
      {row_fault::assigns_dx, "gradients are added"},
      {row_fault::ignores_frozen, "frozen costs nothing"},
      {row_fault::overwrites_dy, "memory is what was planned"},
      {row_fault::overruns_slot, "memory is what was planned"},
      {row_fault::nothing_at_first, "nothing to see gives 0"},
      {row_fault::frozen_stops_gradient, "frozen costs nothing"},
      {row_fault::single_only, "fp32 agrees with fp64"},
      {row_fault::float_constant, "central differences"},
      {row_fault::knows_length, "the declaration is true"},
      {row_fault::divides_by_x, "slopes at zeros and ties"},
      {row_fault::ignores_seed, "draws follow seed and step"},
      {row_fault::shares_a_row, "tasks in any order"},
      {row_fault::sums_in_tasks, "tasks in any order"},
      {row_fault::sums_one_grain, "plan-independence"},
      {row_fault::float_sum, "batch-independence, central differences"},
      {row_fault::neighbours_dy, "plan-independence, central differences, the declaration is true"},
      {row_fault::draws_by_chunk, "plan-independence"},
      {row_fault::drops_last_row, "central differences, the declaration is true"},
      {row_fault::wrong_alone, "central differences"},
      {row_fault::wrong_when_large, "slopes at zeros and ties"},
      {row_fault::throws_when_frozen, "frozen costs nothing"},
      {row_fault::throws_alone, "a step runs to its end"},
      {row_fault::trained_elsewhere, "frozen costs nothing"},
  };
  for (const auto& c : cases) {
    if (c.fault == row_fault::allocates && !laws::counts_allocations()) continue;
    const laws::report r = tried(c.fault);
    INFO(r);
    CHECK(laws::broken(r) == c.law);
  }
}

TEST_CASE("a report says where and by how much") {
  const auto says = [](row_fault fault, const char* words) {
    if (fault == row_fault::allocates && !laws::counts_allocations()) return;
    const std::string text = laws::text_of(tried(fault));
    INFO(text);
    CHECK(text.find(words) != std::string::npos);
  };
  says(row_fault::wrong_sign, "gradient of blocks.0.rows.gain, row 0, column 0 is ");
  says(row_fault::assigns, "gradient of blocks.0.rows.gain, row 0, column 0 is ");
  says(row_fault::sums_by_chunk, "gradient of blocks.");
  says(row_fault::sums_by_chunk, "not judged: batch-independence");
  says(row_fault::depends_on_chunk, "the value is ");
  says(row_fault::nothing_at_first, "y of token 0 (sample 1, position 0), column 0 is ");
  says(row_fault::mixes_rows, "though it may not notice");
  says(row_fault::counts_calls, "the value alone is ");
  says(row_fault::allocates, "memory was asked for ");
  says(row_fault::sinks_deep, " down the stack, where 262144 are allowed");
  says(row_fault::assigns_dx,
       "where dx is not 0 before backward or release adds to it, gradient of ");
  says(row_fault::ignores_frozen,
       "rows: backward writes to the gradient of a frozen parameter: ask at.trains(tag) first");
  says(row_fault::overwrites_dy, "rows: backward writes to x, y or dy, or outside them");
  says(row_fault::overruns_slot, "rows: forward writes outside a slot");
  says(row_fault::shares_a_row, "two threads may do so at once");
  says(row_fault::none, "all laws hold (");
}

}  // namespace
}  // namespace streambp
