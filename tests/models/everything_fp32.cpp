#include "everything.hpp"

using namespace streambp;
using namespace streambp::everything;

TEST_CASE("everything in one chain: plans, in fp32") {
  random_plans_have_the_same_bits<float>(short_ragged, 0, 60);
}

TEST_CASE("everything in one chain: plans, in fp32, with completions that share prompts") {
  random_plans_have_the_same_bits<float>(family, 3, 40);
}

TEST_CASE("everything in one chain: packing, in fp32") {
  packing_does_not_matter(trial_on<float>(short_ragged, false), 1e-5);
}
