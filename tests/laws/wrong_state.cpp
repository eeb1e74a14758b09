#include "wrong_state.hpp"

#include "broken.hpp"

namespace streambp {
namespace {

std::string broken_by(state_fault fault) {
  return laws::broken(laws::hold(wrong_state{4, fault}, laws::rows(37, 4)));
}

TEST_CASE("a carry, right and wrong") {
  CHECK(broken_by(state_fault::none) == "");
  CHECK(broken_by(state_fault::forgets_part) == "central differences");
  CHECK(broken_by(state_fault::forgets_initial) == "central differences");
  CHECK(broken_by(state_fault::keeps_nothing) == "batch-independence");
  CHECK(broken_by(state_fault::assigns_d_before) ==
        "batch-independence, central differences, gradients are added");
  // In one chunk nothing is forgotten.
  CHECK(broken_by(state_fault::forgets_at_chunks) == "plan-independence, central differences");
  // A chunk edge between two samples hides it there, and the other sample's rows show in the slope.
  CHECK(broken_by(state_fault::crosses_samples) ==
        "plan-independence, central differences, the declaration is true");
  CHECK(broken_by(state_fault::hands_on_early) == "plan-independence, central differences");
  CHECK(broken_by(state_fault::drops_last_sample) == "batch-independence, central differences");
  CHECK(broken_by(state_fault::first_starts) == "batch-independence, central differences");
  CHECK(broken_by(state_fault::behind_one_token) ==
        "batch-independence, central differences, the declaration is true");
  CHECK(broken_by(state_fault::forgets_dy_of_last) == "central differences");
}

TEST_CASE("a frozen layer hands gradients to the states that it was given") {
  CHECK(laws::broken(laws::hold(gained_state{4}, laws::rows(37, 4))) == "");
  CHECK(laws::broken(laws::hold(gained_state{4, true}, laws::rows(37, 4))) ==
        "frozen costs nothing");
}

}  // namespace
}  // namespace streambp
