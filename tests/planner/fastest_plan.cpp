#include <streambp/planner/fastest_plan.hpp>

#include <doctest/doctest.h>

#include <string>

#include "small_models.hpp"

using namespace streambp;
using namespace streambp::small;

namespace {

const auto four = blocks(4);

}  // namespace

TEST_CASE("a plan is the planner's choice, with the fewest FLOPs there could be beside it") {
  plan_options o{.grains = grains};
  o.budget = planner_of<decltype(blocks(1))>(four, samples, o).search(true)->peak() + 256;
  planner_of<decltype(blocks(1))> all(four, samples, o);
  const auto p = plan<double>(four, cross_entropy{}, samples, o);
  const step_plan best = *all.search();
  CHECK(p.choice == best.choice);
  CHECK(p.peak() == best.peak());
  CHECK(p.peak() <= o.budget);
  CHECK(p.least_flops == all.plain().flops);
  CHECK(p.flops > p.least_flops);
  CHECK(plan<double>(four, cross_entropy{}, samples, {.grains = grains}).flops == p.least_flops);
}

TEST_CASE("a budget that cannot be met says what would do, and what was asked for") {
  plan_options o{.budget = 1000, .chunk = 16, .grains = grains};
  try {
    plan<double>(four, cross_entropy{}, samples, o);
    FAIL("accepted");
  } catch (const budget_error& e) {
    const std::string words = e.what();
    CHECK(words.starts_with(
        "plan: no exact plan of 61 tokens fits 1000 bytes (1000 B); the least is " +
        std::to_string(e.least) + " bytes"));
    CHECK(words.ends_with(", with the chunk and stage that were asked for"));
    o.budget = e.least;
    CHECK(plan<double>(four, cross_entropy{}, samples, o).peak() == e.least);
    const auto refused = [&](std::size_t budget) -> std::string {
      o.budget = budget;
      o.threads = 2;
      try {
        plan<double>(four, cross_entropy{}, samples, o);
      } catch (const budget_error& two) {
        return two.what();
      }
      return "";
    };
    CHECK(refused(e.least).ends_with(sentence("; with one thread ", e.least, " bytes would do")));
    CHECK(refused(1000).ends_with(sentence("; with one thread ", e.least)));
  }
}

TEST_CASE("2^40 tokens: a budget's reach, to 1/64 of the tokens") {
  const packed tokens = packed::one(position(1) << 40);
  const std::size_t least = planner_of<decltype(blocks(1))>(four, tokens, {}).search(true)->peak();
  const auto p = plan<double>(four, cross_entropy{}, tokens, {.budget = 2 * least});
  CHECK(p.limit.fits <= position(1) << 41);
  CHECK(p.limit.next > (position(1) << 41) - (position(1) << 35));
  CHECK(p.limit.next - p.limit.fits <= position(1) << 34);
  CHECK(p.limit.bytes.total() > 2 * least);
  CHECK(p.least_flops <= p.flops);
}

TEST_CASE("tokens that no number of bytes would do for are refused in words") {
  const position width = position(1) << 16;
  const auto wide =
      embedding(19, width) |
      repeat(1, residual(rms_norm(width) | causal_attention({.features = width, .heads = 2})) |
                    residual(rms_norm(width) | swiglu(width, 12))) |
      rms_norm(width) | linear(width, 19);
  try {
    plan<double>(wide, cross_entropy{}, packed::one(most_tokens));
    FAIL("accepted");
  } catch (const budget_error& e) {
    CHECK(std::string(e.what()) ==
          "plan: any exact plan of 17592186044416 tokens takes 2^64 bytes or more; give fewer");
  }
}
