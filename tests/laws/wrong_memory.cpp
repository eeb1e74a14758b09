#include "wrong_memory.hpp"

#include "broken.hpp"

namespace streambp {
namespace {

std::string broken_by(memory_fault fault) {
  return laws::broken(laws::hold(wrong_memory{4, fault}, laws::rows(37, 4)));
}

TEST_CASE("a memory, right and wrong") {
  CHECK(broken_by(memory_fault::none) == "");
  // The samples share the rows of a prefix.
  CHECK(broken_by(memory_fault::assigns_dv) == "batch-independence, central differences");
  CHECK(broken_by(memory_fault::releases_twice) == "central differences");
  CHECK(broken_by(memory_fault::forgets_prefix) == "central differences");
  CHECK(broken_by(memory_fault::ignores_parent) == "batch-independence");
  CHECK(broken_by(memory_fault::drops_last_sample) == "batch-independence, central differences");
  // In one chunk none is dropped.
  CHECK(broken_by(memory_fault::drops_first_row) == "plan-independence, central differences");
  CHECK(broken_by(memory_fault::prefix_of_first) == "batch-independence");
  // Where a chunk ends there is no next row.
  CHECK(broken_by(memory_fault::reads_next) == "plan-independence, the declaration is true");
  // Its backward adds to the gradient of what it read.
  CHECK(broken_by(memory_fault::reads_to_the_end) ==
        "the declaration is true, memory is what was planned");
  // What it writes shows in the neighbour's own results.
  CHECK(broken_by(memory_fault::remembers_neighbour) ==
        "the declaration is true, memory is what was planned");
}

}  // namespace
}  // namespace streambp
