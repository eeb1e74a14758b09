#include <doctest/doctest.h>

#include <sstream>
#include <streambp/laws/report.hpp>

namespace streambp::laws {
namespace {

std::string text_of(const report& r) {
  std::ostringstream out;
  out << r;
  return out.str();
}

TEST_CASE("a report without findings is true and says how much was tried") {
  report r;
  r.count_plans(40);
  r.count_step();
  r.largest_error = 0.5;
  CHECK(r);
  CHECK(text_of(r) == "all laws hold (40 plans, 1 steps, differences within 0.5)");
  r.counted_allocations = false;
  CHECK(text_of(r) ==
        "all laws hold (40 plans, 1 steps, differences within 0.5; allocations were not counted: "
        "include laws/count_allocations.hpp)");
}

TEST_CASE("a report keeps the first finding of each law, whatever the precision") {
  report r;
  r.speak_of("fp64");
  r.add(law::memory, "first");
  r.add(law::memory, "second");
  r.add(law::flops, "third");
  r.speak_of("fp32");
  r.add(law::memory, "fourth");
  r.skip(law::frozen);
  r.skip(law::frozen);
  CHECK(!r);
  CHECK(r.breaks(law::memory));
  CHECK(!r.breaks(law::frozen));
  CHECK(text_of(r) ==
        "broken: memory is what was planned\n    fp64: first\n"
        "broken: FLOPs are what was planned\n    fp64: third\n"
        "not judged: frozen costs nothing (its premise is broken)\n"
        " (0 plans, 0 steps, differences within 0)");
}

TEST_CASE("every law has a name") {
  for (int l = 0; l < law_count; ++l) CHECK(*name_of(law(l)) != '\0');
}

}  // namespace
}  // namespace streambp::laws
