#include <streambp/laws/guarded.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace streambp::laws {
namespace {

TEST_CASE("a guarded buffer notices writes around it and, as an input, inside") {
  const std::vector<double> values{1, 2, 3};
  guarded_buffer<float> b(values);
  CHECK(b.holds(values));
  b.span()[1] = 7;
  CHECK(b.margins_untouched());
  CHECK(!b.holds(values));
  b.span().data()[-1] = 0;
  CHECK(!b.margins_untouched());
  guarded_buffer<float> c(3);
  c.span().data()[3] = 0;
  CHECK(!c.margins_untouched());
}

TEST_CASE("guarded rows stand in for strided ones and are handed back") {
  std::vector<double> store(12, 5);
  const view<double> rows(store.data(), 3, 2, 4);
  guarded_rows<double> g(rows, std::nan(""));
  CHECK(g.untouched());
  CHECK(g.rows()(2, 1) == 5);
  g.rows()(2, 1) = 8;
  CHECK(!g.untouched());
  CHECK(g.give_back(rows));
  CHECK(rows(2, 1) == 8);
  CHECK(store[2] == 5);
  g.rows().data[6] = 0;
  CHECK(!g.give_back(rows));

  guarded_rows<double> empty(rows, 9, true);
  CHECK(empty.rows()(0, 0) == 9);
  CHECK(empty.untouched());
  const view<double> none(nullptr, 3, 2);
  guarded_rows<double> without(none, 9);
  CHECK(without.rows().data == nullptr);
  CHECK(without.rows().rows == 3);
  CHECK(without.untouched());
}

TEST_CASE("hidden rows come back, and a write to them is noticed") {
  std::vector<double> store{0, 1, 2, 3, 4, 5};
  const view<double> rows(store.data(), 3, 2);
  {
    hidden_rows<double> hidden(rows, {{1, 2}, {2, 2}}, -7);
    CHECK(store == std::vector<double>{-7, -7, 2, 3, -7, -7});
    rows(1, 0) = 20;
    CHECK(hidden.restore());
    CHECK(store == std::vector<double>{0, 1, 20, 3, 4, 5});
  }
  hidden_rows<double> hidden(rows, {{1, 9}}, -7);
  rows(0, 1) = 3;
  CHECK(!hidden.restore());
  CHECK(store[1] == 1);
}

TEST_CASE("a snapshot tells whether rows stayed") {
  std::vector<double> store{0, 1, 2, 3};
  const view<double> rows(store.data(), 2, 2);
  const snapshot<double> before(rows);
  CHECK(before.unchanged());
  store[3] = 4;
  CHECK(!before.unchanged());
}

}  // namespace
}  // namespace streambp::laws
