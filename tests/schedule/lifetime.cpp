// What of a stage lives and how long: whole lists, by hand.
#include <streambp/schedule/lifetime.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace streambp;

namespace {

// One line each: what, section, and how long. `+`: the result stays in the chunk; `k`: keepable
// rows are elsewhere.
std::vector<std::string> lives(const section_list& model, const stage_plan& s, bool fuses_head) {
  static const char* const what[] = {"checkpoint", "state",          "d_state", "kept",
                                     "chunk",      "chunk_gradient", "working", "head"};
  static const char* const how_long[] = {"step", "stage", "turn"};
  std::vector<std::string> all;
  for_each_lifetime(facts_of(model, s, fuses_head, 0), [&](const lifetime& l) {
    all.push_back(std::string(what[int(l.what)]) + " " + std::to_string(l.section) +
                  (l.result ? "+" : "") + (l.keepable ? "k" : "") + " " + how_long[int(l.lives)]);
  });
  return all;
}
using lines = std::vector<std::string>;

section_list list_of(std::vector<half> parts) {
  section_list list;
  for (const half p : parts) {
    section_instance s;
    s.part = p;
    list.sections.push_back(s);
  }
  return list;
}
const section_list plain = list_of({half::whole, half::whole, half::whole});

}  // namespace

TEST_CASE("a stage in the middle: its input for the step, states for the stage, sections in turn") {
  CHECK(lives(plain, {1, 2}, false) == lines{"checkpoint 1 step", "state 1 stage",
                                             "d_state 1 stage", "chunk 1 stage", "working 1 turn"});
}

TEST_CASE("what is kept lives as long as the step") {
  CHECK(lives(plain, {1, 2, true, true, true}, false) == lines{"checkpoint 1 step", "state 1 step",
                                                               "kept 1 step", "d_state 1 stage",
                                                               "chunk 1k step", "working 1 turn"});
}

TEST_CASE(
    "the last stage: results stay in the chunk for the next section, the head comes between") {
  CHECK(lives(plain, {1, 3}, false) == lines{"checkpoint 1 step", "state 1 stage", "state 2 stage",
                                             "head 1 turn", "d_state 1 stage", "d_state 2 stage",
                                             "chunk 1+ stage", "chunk 2 stage", "working 1+ turn",
                                             "working 2 turn"});
}

TEST_CASE("one stage with its head: no gradient rows but a chunk's, the head takes its turn") {
  CHECK(lives(plain, {0, 3}, true) == lines{"state 0 stage", "state 1 stage", "state 2 stage",
                                            "d_state 0 stage", "d_state 1 stage", "d_state 2 stage",
                                            "chunk_gradient 0 stage", "chunk 0+ stage",
                                            "chunk 1+ stage", "chunk 2+ stage", "working 0+ turn",
                                            "working 1+ turn", "working 2+ turn", "head 0 turn"});
}

TEST_CASE("a trailing remember half brings rows, but its memory is the next stage's") {
  const auto halves = list_of({half::whole, half::remember, half::read});
  CHECK(lives(halves, {0, 2, false, true, false}, false) ==
        lines{"state 0 stage", "kept 0 step", "d_state 0 stage", "chunk 0k stage", "chunk 1 stage",
              "working 0 turn", "working 1 turn"});
  CHECK(lives(halves, {2, 3}, false) == lines{"checkpoint 2 step", "state 2 stage", "head 2 turn",
                                              "d_state 2 stage", "chunk 2 stage",
                                              "working 2 turn"});
}
