#include <streambp/streambp.hpp>

#include <doctest/doctest.h>

#include <set>
#include <streambp/laws/plan_choices.hpp>

namespace streambp::laws {
namespace {

// Only the planner's types are made here, no engine.
auto model_of(position blocks) {
  return repeat(blocks, residual(rms_norm(4) | gated_recurrence(4, 3)));
}
using model_type = decltype(model_of(1));

TEST_CASE("cut sets: all of few cuts, or none, each and all of many; forced ones always") {
  const auto sets = [](position blocks) {
    return cut_sets(instance_list<model_type>(model_of(blocks), 4));
  };
  CHECK(sets(1) == std::vector<std::vector<position>>{{0}});
  CHECK(sets(2).size() == 2);
  CHECK(sets(4).size() == 8);
  CHECK(sets(6).size() == 7);
  CHECK(sets(6).back() == std::vector<position>{0, 1, 2, 3, 4, 5});

  const auto both = bidirectional_attention({.features = 4}) | gated_recurrence(4, 3);
  const instance_list<std::decay_t<decltype(both)>> forced(both, 4);
  for (const auto& set : cut_sets(forced)) CHECK(std::count(set.begin(), set.end(), 1) == 1);
}

TEST_CASE("choices bring every chunk size, every thing kept, fused heads and spaced carries") {
  const instance_list<model_type> list(model_of(2), 4);
  const auto all = plan_choices(list, false, 37, {8, 16});
  std::set<position> chunks, head_chunks, intervals;
  int fused = 0, memory = 0, outputs = 0, chunk = 0, nothing = 0;
  for (const plan_choice& c : all) {
    chunks.insert(c.chunk);
    head_chunks.insert(c.head_chunk);
    intervals.insert(c.carry_interval);
    fused += c.fuses_head;
    for (const stage_plan& s : c.stages) {
      memory += s.keeps_memory;
      outputs += s.keeps_outputs;
      chunk += s.keeps_chunk;
      nothing += !s.keeps_memory && !s.keeps_outputs && !s.keeps_chunk;
    }
  }
  CHECK(chunks == std::set<position>{16, 32, 37});
  CHECK(head_chunks == std::set<position>{16, 37});
  CHECK(intervals == std::set<position>{1, 2});
  for (const int n : {fused, memory, outputs, chunk, nothing}) CHECK(n > 5);
  for (const plan_choice& c : plan_choices(list, true, 37, {8, 16})) CHECK(!c.fuses_head);
}

}  // namespace
}  // namespace streambp::laws
