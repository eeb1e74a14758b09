#include <streambp/schedule/parameters.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

struct a_tag {};
struct b_tag {};

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const shape_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("parameters stand one after another; what is frozen takes no place among gradients") {
  parameter_table table;
  CHECK(table.add({"a", 2, 3, 0, -1, {}, nullptr}, true) == 0);
  CHECK(table.add({"b", 1, 5, 0, -1, {}, nullptr}, false) == 1);
  CHECK(table.add({"c", 4, 1, 0, -1, {}, nullptr}, true) == 2);
  CHECK(table.parameters == 15);
  CHECK(table.gradients == 10);
  CHECK(table["a"].offset == 0);
  CHECK(table["b"].offset == 6);
  CHECK(table["c"].offset == 11);
  CHECK(table["a"].gradient == 0);
  CHECK(table["b"].gradient == -1);
  CHECK(table["c"].gradient == 6);
  CHECK(table["c"].size() == 4);
}

TEST_CASE("a parameter and its gradient by name, in buffers of the table's size") {
  parameter_table table;
  table.add({"a", 2, 3, 0, -1, {}, nullptr}, true);
  table.add({"b", 1, 5, 0, -1, {}, nullptr}, false);
  table.add({"c", 4, 1, 0, -1, {}, nullptr}, true);
  std::vector<float> parameters(15), gradient(10);
  const std::vector<float>& read_only = parameters;
  parameters[12] = 3;
  CHECK(table.value_of("c", read_only)(1, 0) == 3);
  CHECK(table.value_of("b", parameters).cols == 5);
  table.gradient_of("c", gradient)(3, 0) = 2;
  CHECK(gradient[9] == 2);
  CHECK(complaint([&] { table.gradient_of("b", gradient); }) ==
        "gradient_of: b is frozen; it has no gradient");
  CHECK(complaint([&] { table.value_of("a", gradient); }) ==
        "value_of: the buffer has 10 entries, the table has 15");
  table.add({"a", 1, 1, 0, -1, {}, nullptr}, true);
  CHECK(complaint([&] { table.expect_unique_names(); }) ==
        "two parameters are named 'a'; named(\"...\", f) tells them apart");
}

TEST_CASE("a name that is not there is answered with those that are") {
  parameter_table table;
  table.add({"embedding.table", 2, 3, 0, -1, {}, nullptr}, true);
  table.add({"linear.weight", 2, 3, 0, -1, {}, nullptr}, true);
  CHECK(complaint([&] { (void)table["linear.bias"]; }) ==
        "no parameter is named 'linear.bias'; there are embedding.table, linear.weight");
}

TEST_CASE("a shared parameter has one owner, before it, of the same shape") {
  CHECK(&tag_identity<a_tag> != &tag_identity<b_tag>);
  parameter_table table;
  table.add({"one", 2, 3, 0, -1, {}, &tag_identity<a_tag>}, true);
  table.add({"other", 5, 3, 0, -1, {}, &tag_identity<b_tag>}, true);
  CHECK(table.owner(&tag_identity<b_tag>, 5, 3, "user") == 1);
  CHECK(complaint([&] { table.owner(&tag_identity<b_tag>, 3, 5, "user"); }) ==
        "user is 3 x 5 but shares other, which is 5 x 3");
  CHECK(complaint([&] { table.owner(nullptr, 3, 5, "user"); }) ==
        "user: shares a parameter that no layer before it owns");
  table.add({"again", 2, 3, 0, -1, {}, &tag_identity<a_tag>}, true);
  CHECK(complaint([&] { table.owner(&tag_identity<a_tag>, 2, 3, "user"); }) ==
        "user: shares a parameter that two layers own, one and again");
}
