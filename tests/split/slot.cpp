#include <streambp/split/slot.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

struct w_tag {};
struct k_tag {};
struct h_tag {};
struct q_tag {};
struct o_tag {};
struct s_tag {};
struct t_tag {};

constexpr auto slots = std::tuple{parameter(w_tag{}, 3, 4, ones),
                                  shared_parameter(t_tag{}, 5, 6),
                                  memory(k_tag{}, 7),
                                  carry(h_tag{}, 2, 8),
                                  saved(q_tag{}, 9),
                                  keepable(o_tag{}, 10),
                                  scratch(s_tag{}, 11),
                                  workspace(s_tag{}, 12)};
using count = slot_count<std::remove_cv_t<decltype(slots)>>;

template <int I>
constexpr auto at() {
  return std::get<I>(slots);
}

}  // namespace

// The kind is in the type, the width in the value.
static_assert(at<0>().kind == slot_kind::parameter && at<0>().rows == 3 && at<0>().cols == 4);
static_assert(at<0>().initial.mean == 1 && at<0>().initial.deviation == 0);
static_assert(at<1>().kind == slot_kind::shared && at<1>().rows == 5 && at<1>().cols == 6);
static_assert(at<2>().kind == slot_kind::memory && at<2>().rows == 1 && at<2>().cols == 7);
static_assert(at<3>().kind == slot_kind::carry && at<3>().rows == 2 && at<3>().cols == 8);
static_assert(at<4>().kind == slot_kind::saved && at<4>().cols == 9);
static_assert(at<5>().kind == slot_kind::keepable && at<5>().cols == 10);
static_assert(at<6>().kind == slot_kind::scratch && at<6>().cols == 11);
static_assert(at<7>().kind == slot_kind::workspace && at<7>().cols == 12);

static_assert(count::of(slot_kind::parameter) == 1 && count::of(slot_kind::scratch) == 1);
static_assert(slot_count<std::tuple<>>::of(slot_kind::saved) == 0);
static_assert(
    slot_count<std::tuple<slot<w_tag, slot_kind::saved>, slot<k_tag, slot_kind::saved>>>::of(
        slot_kind::saved) == 2);

static_assert(count::index<w_tag>() == 0 && count::index<h_tag>() == 3 &&
              count::index<o_tag>() == 5);
static_assert(count::index<int>() == -1);

TEST_CASE("slots: widths may be known at run time only") {
  position width = 3;
  width *= 2;
  CHECK(memory(k_tag{}, width).cols == 6);
  CHECK(parameter(w_tag{}, width, 2, zeros).rows * parameter(w_tag{}, width, 2, zeros).cols == 12);
}
