#include <streambp/schedule/stage.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

section_instance plain() { return {}; }
section_instance state() {
  section_instance s;
  s.holds_state = true;
  return s;
}
section_instance carry() {
  section_instance s = state();
  s.split.carries = true;
  return s;
}
section_instance tally() {
  section_instance s;
  s.holds_tally = true;
  return s;
}
section_instance part(half p) {
  section_instance s;
  s.part = p;
  return s;
}
section_list list_of(std::vector<section_instance> sections) {
  section_list list;
  list.sections = std::move(sections);
  return list;
}

}  // namespace

TEST_CASE("a stage's facts: where its states and tallies end") {
  const section_list list = list_of({plain(), state(), plain(), tally(), plain()});
  const stage_facts f = facts_of(list, {0, 5}, true, 0);
  CHECK(f.ends);
  CHECK(f.fuses_head);
  CHECK(f.own_last == 5);
  CHECK(f.last_state == 2);
  CHECK(f.last_first == 4);
  CHECK(f.stateful());
  CHECK_FALSE(f.gave_up_state());  // the last stage's states outlive its forward
  const stage_facts none = facts_of(list, {2, 3}, true, 0);
  CHECK_FALSE(none.ends);
  CHECK_FALSE(none.fuses_head);
  CHECK(none.last_state == 2);
  CHECK_FALSE(none.stateful());
  CHECK_FALSE(none.rebuilds(3));
  CHECK_FALSE(f.carries);
  const section_list carried = list_of({carry(), tally(), state()});
  CHECK(facts_of(carried, {0, 3}, false, 0).carries);
  CHECK_FALSE(facts_of(carried, {1, 3}, false, 0).carries);
  CHECK(facts_of(carried, {0, 3}, false, 0).last_first == 3);
}

TEST_CASE("a stage that gave up its states rebuilds them, in more than one chunk") {
  const section_list list = list_of({state(), plain()});
  CHECK(facts_of(list, {0, 1}, false, 0).rebuilds(2));
  CHECK_FALSE(facts_of(list, {0, 1}, false, 0).rebuilds(1));
  CHECK_FALSE(facts_of(list, {0, 1, true}, false, 0).rebuilds(2));
}

TEST_CASE("a stage goes down to the lowest section that is wanted") {
  const section_list list = list_of({plain(), plain(), plain(), plain()});
  CHECK(facts_of(list, {0, 2}, false, 1).lowest == 1);
  CHECK(facts_of(list, {2, 4}, false, 1).lowest == 2);
  CHECK_FALSE(facts_of(list, {0, 2}, false, 2).descends());
  CHECK(facts_of(list, {0, 2}, false, 1).descends());
}

TEST_CASE("a trailing remember half is the next stage's; the last two of their memories survive") {
  const auto r = half::remember, d = half::read;
  const section_list list =
      list_of({part(r), part(d), part(r), part(d), part(r), part(d), plain()});
  const stage_facts f = facts_of(list, {1, 3}, false, 0);
  CHECK(f.own_last == 2);
  CHECK(f.begins_with_read);
  CHECK_FALSE(f.read_survives);
  CHECK(facts_of(list, {3, 5}, false, 0).read_survives);
  CHECK(facts_of(list, {5, 7}, false, 0).read_survives);
  CHECK(facts_of(list, {0, 1}, false, 0).own_last == 0);
  stage_plan keeps{1, 3};
  keeps.keeps_outputs = true;
  CHECK(facts_of(list, keeps, false, 0).keeps_outputs(1));
  CHECK_FALSE(facts_of(list, keeps, false, 0).keeps_outputs(2));
}

TEST_CASE("a gradient stream exists unless one stage takes its rows from its own head") {
  const section_list one = list_of({plain()}), two = list_of({plain(), plain()});
  CHECK(facts_of(one, {0, 1}, false, 0).streams());
  CHECK_FALSE(facts_of(one, {0, 1}, true, 0).streams());
  CHECK(facts_of(two, {0, 1}, true, 0).streams());
  CHECK(facts_of(two, {1, 2}, true, 0).streams());
}
