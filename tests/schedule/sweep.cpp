#include <streambp/schedule/sweep.hpp>

#include <doctest/doctest.h>

using namespace streambp;

using order = std::vector<sweep>;
using enum sweep_kind;

namespace {

// Stages of `lengths` sections each, all of them stateful, in several chunks.
sweep_facts facts(std::vector<position> lengths) {
  sweep_facts f;
  position at = 0;
  for (const position n : lengths) {
    f.stages.push_back({at, at + n});
    at += n;
  }
  f.begins_with_read.assign(lengths.size(), false);
  f.stateful.assign(lengths.size(), true);
  f.chunks = 3;
  return f;
}

}  // namespace

TEST_CASE("one stage: forward, head, and back; nothing is rebuilt") {
  CHECK(sweeps_of(facts({4})) == order{{forward, 0}, {head, 0}, {descend, 0}});
}

TEST_CASE("one stage with a fused head: two sweeps") {
  auto f = facts({4});
  f.fuses_head = true;
  CHECK(sweeps_of(f) == order{{forward_state, 0}, {descend, 0}});
}

TEST_CASE("three stages: all but the last rebuild their memories") {
  CHECK(sweeps_of(facts({2, 1, 2})) == order{{forward, 0},
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
  auto f = facts({1, 1, 1, 1});
  f.stages[0].keeps_memory = true;
  f.stateful[1] = false;
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
  f = facts({1, 1});
  f.chunks = 1;
  CHECK(sweeps_of(f) == order{{forward, 0}, {forward, 1}, {head, 1}, {descend, 1}, {descend, 0}});
}

TEST_CASE("a fused head runs inside the last stage only") {
  auto f = facts({1, 2});
  f.fuses_head = true;
  CHECK(sweeps_of(f) ==
        order{{forward, 0}, {forward_state, 1}, {descend, 1}, {rebuild, 0}, {descend, 0}});
}

TEST_CASE("a coupled loss sums first") {
  auto f = facts({1, 1});
  f.couples = true;
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {summarise, 1},
                              {head, 1},
                              {descend, 1},
                              {rebuild, 0},
                              {descend, 0}});
}

TEST_CASE("no sweep goes down below the lowest parameter that is trained") {
  auto f = facts({2, 2, 2});
  f.lowest = 3;
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {forward, 2},
                              {head, 2},
                              {descend, 2},
                              {rebuild, 1},
                              {descend, 1}});
  f.lowest = 6;
  CHECK(sweeps_of(f) == order{{forward, 0}, {forward, 1}, {forward, 2}, {head, 2}});
}

TEST_CASE(
    "the last two memories of reads that see all survive the forward, others are remembered") {
  auto f = facts({1, 1, 1, 1});
  f.begins_with_read = {false, true, true, true};
  f.stateful.assign(4, false);
  CHECK_FALSE(survives_forward(f, 1));
  CHECK(survives_forward(f, 2));
  CHECK(survives_forward(f, 3));
  CHECK(sweeps_of(f) == order{{forward, 0},
                              {forward, 1},
                              {forward, 2},
                              {forward, 3},
                              {head, 3},
                              {descend, 3},
                              {descend, 2},
                              {remember, 1},
                              {descend, 1},
                              {descend, 0}});
}

TEST_CASE("a forward pass alone") {
  CHECK(forward_sweeps_of(facts({1, 2})) == order{{forward, 0}, {forward, 1}});
}
