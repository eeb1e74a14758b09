// What a sweep does at each chunk: whole lists, by hand; and the flags of every purpose.
#include <streambp/schedule/visit.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace streambp;

namespace {

using lines = std::vector<std::string>;

const char* name_of(purpose p) {
  constexpr const char* names[] = {"forward", "forward_kept", "first_state", "remember",
                                   "rebuild", "refill",       "replay",      "replay_rebuild",
                                   "head",    "backward",     "value",       "open",
                                   "clear",   "close",        "announce"};
  return names[int(p)];
}

std::string line_of(const pass& p) {
  return std::string(name_of(p.why)) + " " + std::to_string(p.first) + "-" +
         std::to_string(p.last) + (p.result ? "" : "!");
}

// The passes of a sweep as a chunk sees them; before the first chunk (-1), after the last (n).
lines seen_at(position chunk, sweep_kind kind, const stage_facts& s, const snapshots& states) {
  lines all;
  for_each_pass(kind, s, states, [&](const pass& p) {
    const moment when = moment_of(p.why);
    if (chunk < 0                ? when == moment::before
        : chunk == states.chunks ? when == moment::after
                                 : when == moment::at_chunk && p.comes_at(chunk))
      all.push_back(line_of(p));
  });
  return all;
}

// Sections [2, 6): the third holds a state, the last is a remember half.
stage_facts middle() {
  stage_facts s;
  s.plan = {2, 6};
  s.own_last = 5;
  s.last_state = s.last_first = 5;
  s.lowest = 2;
  return s;
}

}  // namespace

TEST_CASE("a forward sweep runs all sections at every chunk; the last may be kept") {
  stage_facts s = middle();
  const snapshots states{3, 1};
  CHECK(seen_at(-1, sweep_kind::forward, s, states) == lines{"open 2-6"});
  for (const position c : {0, 1, 2})
    CHECK(seen_at(c, sweep_kind::forward, s, states) == lines{"forward 2-6"});
  s.plan.keeps_chunk = true;
  CHECK(seen_at(1, sweep_kind::forward, s, states) == lines{"forward 2-6"});
  CHECK(seen_at(2, sweep_kind::forward, s, states) == lines{"forward_kept 2-6"});
  CHECK(seen_at(2, sweep_kind::forward_value, s, states) == lines{"forward 2-6", "value 2-6"});
}

TEST_CASE("a rebuild leaves out the last chunk, whose replay remembers") {
  const stage_facts s = middle();
  const snapshots states{3, 1};
  CHECK(seen_at(1, sweep_kind::rebuild, s, states) == lines{"rebuild 2-5!"});
  CHECK(seen_at(2, sweep_kind::rebuild, s, states).empty());
  CHECK(chunks_of(sweep_kind::rebuild, 3) == row_range{0, 2});
  CHECK(seen_at(-1, sweep_kind::descend, s, states) == lines{"clear 2-5"});
  CHECK(seen_at(2, sweep_kind::descend, s, states) ==
        lines{"replay_rebuild 2-5!", "replay 5-6!", "backward 2-6"});
  CHECK(seen_at(1, sweep_kind::descend, s, states) ==
        lines{"replay 2-5!", "replay 5-6!", "backward 2-6"});
  CHECK(seen_at(3, sweep_kind::descend, s, states) == lines{"close 2-6", "announce 2-6"});
}

TEST_CASE("one chunk: no rebuild, so the descending sweep opens the memories") {
  const stage_facts s = middle();
  CHECK_FALSE(s.rebuilds(1));
  CHECK(seen_at(-1, sweep_kind::descend, s, {1, 1}) == lines{"open 2-5", "clear 2-5"});
}

TEST_CASE("what is kept is not replayed; nothing goes down below the lowest") {
  stage_facts s = middle();
  s.plan.keeps_memory = s.plan.keeps_chunk = true;
  s.lowest = 4;
  CHECK(seen_at(2, sweep_kind::descend, s, {3, 1}) == lines{"backward 4-6"});
  CHECK(seen_at(1, sweep_kind::descend, s, {3, 1}) ==
        lines{"replay 2-5!", "replay 5-6!", "backward 4-6"});
  CHECK(seen_at(3, sweep_kind::descend, s, {3, 1}) == lines{"close 2-6", "announce 4-6"});
}

TEST_CASE("a fused head stands between a chunk's replay and its backward") {
  stage_facts s = middle();
  s.plan.last = 5;
  s.ends = s.fuses_head = true;
  CHECK(seen_at(0, sweep_kind::forward_state, s, {2, 1}) == lines{"first_state 2-5!"});
  CHECK(seen_at(0, sweep_kind::descend, s, {2, 1}) ==
        lines{"replay 2-5", "head 2-5", "backward 2-5"});
}

TEST_CASE("a read half clears and brings back the memory that the half before it wrote") {
  stage_facts s = middle();
  s.begins_with_read = true;
  CHECK(seen_at(-1, sweep_kind::descend, s, {2, 1}) == lines{"clear 1-5"});
  CHECK(seen_at(-1, sweep_kind::remember, s, {2, 1}) == lines{"open 1-2"});
  CHECK(seen_at(1, sweep_kind::remember, s, {2, 1}) == lines{"remember 1-2"});
}

TEST_CASE("carries in two levels: each interval's states come again when the sweep reaches it") {
  stage_facts s = middle();
  s.carries = true;
  const snapshots states{8, 3};
  for (position c = 7; c >= 0; --c) {
    INFO("chunk ", c);
    const lines all = seen_at(c, sweep_kind::descend, s, states);
    CHECK((all.front() == "refill 2-5!") == (c == 5 || c == 2));
  }
  for_each_pass(sweep_kind::descend, s, states, [&](const pass& p) {
    if (p.why == purpose::refill) {
      CHECK(p.run_at(5) == row_range{3, 5});
      CHECK(p.run_at(2) == row_range{0, 2});
    } else if (moment_of(p.why) == moment::at_chunk) {
      CHECK(p.run_at(5) == row_range{5, 6});
    }
  });
  // An interval behind the last edge, of one chunk: its end stands where the first state of the
  // interval before it stood.
  CHECK(seen_at(5, sweep_kind::descend, s, {7, 3}).front() == "refill 2-5!");
}

TEST_CASE("a section's result is wanted by the next one of its pass, or by who comes behind") {
  stage_facts s = middle();
  s.plan.keeps_outputs = true;
  pass p{purpose::replay, 2, 5, {}, false};
  CHECK(p.at(3, s).result);
  CHECK_FALSE(p.at(4, s).result);
  p.result = true;
  CHECK(p.at(4, s).result);
  CHECK(p.at(4, s).keeps_outputs);
  CHECK_FALSE(p.at(5, s).keeps_outputs);
}

TEST_CASE("every flag of a visit comes from its purpose") {
  struct row {
    purpose why;
    bool first, remembers, saves, restored;
  };
  using enum purpose;
  for (const row& r : {row{forward, true, true, false, false},
                       {forward_kept, true, true, true, false},
                       {first_state, true, true, false, false},
                       {purpose::remember, false, true, false, true},
                       {rebuild, false, true, false, true},
                       {refill, false, false, false, true},
                       {replay, false, false, true, true},
                       {replay_rebuild, false, true, true, true},
                       {backward, false, false, true, true}}) {
    INFO(name_of(r.why));
    const visit v{r.why, true, true};
    CHECK(v.first() == r.first);
    CHECK(v.remembers() == r.remembers);
    CHECK(v.saves() == r.saves);
    CHECK(v.restored() == r.restored);
    CHECK_FALSE(visit{r.why, true, false}.restored());
    CHECK(visit{r.why, false, false}.state_only() == !r.saves);
  }
}
