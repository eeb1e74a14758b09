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
