#include <streambp/schedule/sweep.hpp>

#include <doctest/doctest.h>

using namespace streambp;

using order = std::vector<sweep>;
namespace {

using stages = std::vector<stage_facts>;
using enum sweep_kind;

// Stages of `lengths` sections each, all of them stateful.
stages stages_of(const std::vector<position>& lengths) {
  stages all;
  position at = 0;
  for (const position n : lengths) {
    stage_facts f;
    f.plan = {at, at + n};
    f.own_last = f.last_state = f.last_first = at + n;
    f.lowest = at;
    all.push_back(f);
    at += n;
  }
  all.back().ends = true;
  return all;
}
order sweeps_of(const stages& all, position chunks = 3) {
  return streambp::sweeps_of(all, {.chunks = chunks});
}

}  // namespace

TEST_CASE("one stage: forward, head, and back; nothing is rebuilt") {
  CHECK(sweeps_of(stages_of({4})) == order{{forward, 0}, {head, 0}, {descend, 0}});
}

TEST_CASE("one stage with a fused head: two sweeps") {
  auto f = stages_of({4});
  f.back().fuses_head = true;
  CHECK(sweeps_of(f) == order{{forward_state, 0}, {descend, 0}});
}

TEST_CASE("three stages: all but the last rebuild their memories") {
  CHECK(sweeps_of(stages_of({2, 1, 2})) == order{{forward, 0},
                                                 {forward, 1},
                                                 {forward, 2},
                                                 {head, 2},
                                                 {descend, 2},
                                                 {rebuild, 1},
                                                 {descend, 1},
                                                 {rebuild, 0},
                                                 {descend, 0}});
}

TEST_CASE("no rebuild of what was kept, of what holds no state, or of a single chunk") {
  auto f = stages_of({1, 1, 1, 1});
  f[0].plan.keeps_memory = true;
  f[1].last_state = f[1].plan.first;
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {forward, 2},
                              {forward, 3},
                              {head, 3},
                              {descend, 3},
                              {rebuild, 2},
                              {descend, 2},
                              {descend, 1},
                              {descend, 0}});
  f = stages_of({1, 1});
  CHECK(sweeps_of(f, 1) ==
        order{{forward, 0}, {forward, 1}, {head, 1}, {descend, 1}, {descend, 0}});
}

TEST_CASE("a fused head runs inside the last stage only") {
  auto f = stages_of({1, 2});
  f.back().fuses_head = true;
  CHECK(sweeps_of(f) ==
        order{{forward, 0}, {forward_state, 1}, {descend, 1}, {rebuild, 0}, {descend, 0}});
}

TEST_CASE("a coupled loss sums first") {
  auto f = stages_of({1, 1});
  CHECK(streambp::sweeps_of(f, {.couples = true, .chunks = 3}) == order{{forward, 0},
                                                                        {forward, 1},
                                                                        {summarise, 1},
                                                                        {head, 1},
                                                                        {descend, 1},
                                                                        {rebuild, 0},
                                                                        {descend, 0}});
}

TEST_CASE("no sweep goes down below the lowest parameter that is trained") {
  auto f = stages_of({2, 2, 2});
  f[0].lowest = 2;
  f[1].lowest = 3;
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {forward, 2},
                              {head, 2},
                              {descend, 2},
                              {rebuild, 1},
                              {descend, 1}});
  f[1].lowest = 4;
  f[2].lowest = 6;
  CHECK(sweeps_of(f) == order{{forward, 0}, {forward, 1}, {forward, 2}, {head, 2}});
}

TEST_CASE("a memory of a read that sees all, and that did not survive the forward, comes again") {
  auto f = stages_of({1, 1, 1});
  f[1].begins_with_read = f[2].begins_with_read = true;
  f[1].read_survives = false;
  for (auto& s : f) s.last_state = s.plan.first;
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {forward, 2},
                              {head, 2},
                              {descend, 2},
                              {remember, 1},
                              {descend, 1},
                              {descend, 0}});
}

TEST_CASE("side losses, then what the loss couples, stand before the first gradient") {
  CHECK(streambp::sweeps_of(stages_of({2}), step_facts{true, true, 3}) ==
        order{{forward, 0}, {sweep_kind::tally, 0}, {summarise, 0}, {head, 0}, {descend, 0}});
  auto fused = stages_of({2});
  fused.back().fuses_head = true;
  CHECK(streambp::sweeps_of(fused, step_facts{true, false, 3}) ==
        order{{forward_state, 0}, {sweep_kind::tally, 0}, {descend, 0}});
}

TEST_CASE(
    "reading: a forward pass; the head follows, or is inside where rows have no other place") {
  CHECK(reading_sweeps_of(stages_of({1, 2})) == order{{forward, 0}, {forward, 1}, {value, 1}});
  auto fused = stages_of({3});
  fused.back().fuses_head = true;
  CHECK(reading_sweeps_of(fused) == order{{forward_value, 0}});
}
