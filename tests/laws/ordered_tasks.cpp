#include <streambp/laws/ordered_tasks.hpp>

#include <doctest/doctest.h>

#include <streambp/cpu/rows.hpp>

using namespace streambp;
using laws::ordered_tasks;

namespace {

// The order in which a loop over five rows visits them.
std::vector<position> visited(ordered_tasks::order o) {
  cpu::device<double> on(2);
  ordered_tasks tasks(o);
  on.run_by(&tasks);
  std::vector<position> rows;
  for_rows(on, 5, 1, [&](position row) { rows.push_back(row); });
  on.run_by(nullptr);
  return rows;
}

}  // namespace

TEST_CASE("loops over rows run a row a task, in the order asked for") {
  using enum ordered_tasks::order;
  CHECK(visited(ascending) == std::vector<position>{0, 1, 2, 3, 4});
  CHECK(visited(descending) == std::vector<position>{4, 3, 2, 1, 0});
  CHECK(visited(odd_first) == std::vector<position>{1, 3, 0, 2, 4});
}

TEST_CASE("what tasks of two threads write to one place is a race; to places of their own, none") {
  using enum ordered_tasks::order;
  std::vector<double> numbers(5);
  const view<double> rows(numbers.data(), 5, 1);
  cpu::device<double> on(2);
  for (const auto o : {ascending, descending, odd_first})
    for (const bool shared : {false, true}) {
      ordered_tasks tasks(o);
      tasks.look_at(rows);
      on.run_by(&tasks);
      double next = 1;
      for_rows(on, 5, 1, [&](position row) { rows(shared ? 2 : row, 0) = ++next; });
      on.run_by(nullptr);
      CHECK(tasks.race().empty() == !shared);
    }
}
