#include <streambp/schedule/program.hpp>

#include <doctest/doctest.h>

#include <streambp/layers/activation.hpp>
#include <streambp/layers/attention.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/linear.hpp>
#include <streambp/layers/mixture_of_experts.hpp>
#include <streambp/layers/norm.hpp>
#include <string>

using namespace streambp;

namespace {

constexpr bool same(const step& a, const step& b) {
  return a.op == b.op && a.in == b.in && a.out == b.out && a.skip == b.skip;
}
template <std::size_t N>
constexpr bool same(const program& p, const step (&steps)[N]) {
  bool equal = p.size == int(N);
  for (std::size_t i = 0; equal && i < N; ++i) equal = same(p.steps[i], steps[i]);
  return equal;
}
// The first entries.
template <class T, std::size_t N>
constexpr bool starts(const std::array<T, program::most>& all, const T (&some)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (all[i] != some[i]) return false;
  return true;
}

template <class... L>
struct in_a_row;
template <class L>
struct in_a_row<L> {
  using type = L;
};
template <class A, class B, class... L>
struct in_a_row<A, B, L...> {
  using type = typename in_a_row<sequential<A, B>, L...>::type;
};
template <class... L>
using pipe = typename in_a_row<L...>::type;

using causal = attention<past>;
using bidirectional = attention<all>;

}  // namespace

// x + attention(norm(x)): the branch's gradient is the result's, in its place.
namespace attention_block {
constexpr program p = program_of<residual_of<pipe<rms_norm, causal>>>();
static_assert(same(p, {{0, 0, 1, -1}, {1, 1, 2, -1}, {-1, 2, 3, 0}}));
static_assert(p.values == 4 && p.result == 3 && p.operator_count == 2 && p.part == half::whole);
static_assert(p.split() == dependency{past, false, true} && p.trains() && p.holds_state());
static_assert(!p.remembers(0) && p.remembers(1) && !p.remembers(2));
// The memory needs the norm, not the attention; backward needs what the norm wrote.
static_assert(starts(p.feeds_state(true).runs, {true, false, false}));
static_assert(starts(p.feeds_backward(false).runs, {true, false, false}));
static_assert(starts(p.feeds_backward(true).runs, {true, true, true}));
static_assert(p.lasts(0) && p.lasts(1) && !p.lasts(2) && !p.lasts(3));
static_assert(starts(p.gradient_storage().alias, {3, 1, 3, 3}));
static_assert(starts(p.gradient_storage().copies, {false, false, false}));
}  // namespace attention_block

// A recurrence is run by an ascending sweep for its carry; what follows it is not.
namespace recurrent_block {
constexpr program p = program_of<pipe<rms_norm, gated_recurrence, linear>>();
static_assert(p.split() == dependency{past, true, false} && p.holds_state());
static_assert(starts(p.feeds_state(true).runs, {true, true, false}));
// ... and its own output is nobody's then.
static_assert(starts(p.feeds_state(true).output, {true, false, false}));
static_assert(p.reads_carry(1) && !p.remembers(1));
static_assert(starts(p.feeds_backward(false).runs, {true, true, false}));
static_assert(starts(p.feeds_backward(false).output, {true, true, false}));
}  // namespace recurrent_block

// A memory behind a recurrence: both feed state.
static_assert(
    starts(program_of<pipe<linear, gated_recurrence, causal, linear>>().feeds_state(true).runs,
           {true, true, false, false}));
static_assert(
    starts(program_of<pipe<linear, gated_recurrence, causal, linear>>().feeds_state(true).output,
           {true, true, false, false}));
// A recurrence behind attention needs the attention's output.
static_assert(starts(program_of<pipe<causal, gated_recurrence, linear>>().feeds_state(true).runs,
                     {true, true, false}));
// ... and, behind its residual, the sum.
static_assert(starts(
    program_of<pipe<residual_of<pipe<linear, causal>>, gated_recurrence>>().feeds_state(true).runs,
    {true, true, true, true}));
// Rows alone feed no state.
static_assert(!program_of<pipe<rms_norm, linear>>().holds_state());
static_assert(starts(program_of<pipe<rms_norm, linear>>().feeds_state(true).runs, {false, false}));

// A tally is added to in the first forward; later sweeps do not run what feeds it.
static_assert(starts(program_of<pipe<linear, mixture_of_experts>>().feeds_state(true).runs,
                     {true, false}));
static_assert(starts(program_of<pipe<linear, mixture_of_experts>>().feeds_state(false).runs,
                     {false, false}));
static_assert(program_of<mixture_of_experts>().holds_tally() &&
              !program_of<mixture_of_experts>().holds_state());

// x + f(x) with one operator: it would read its output's gradient where it adds its input's.
namespace single_operator {
constexpr program p = program_of<residual_of<activate>>();
static_assert(same(p, {{0, 0, 1, -1}, {-1, 1, 2, 0}}));
static_assert(starts(p.gradient_storage().alias, {2, 1, 2}));
static_assert(starts(p.gradient_storage().copies, {false, true}));
static_assert(!p.trains());
}  // namespace single_operator

// x + (a(x) + g(a(x))): the outer sum's branch ends in a sum whose skip changes the same rows.
namespace nested {
constexpr program p = program_of<residual_of<pipe<linear, residual_of<pipe<rms_norm, linear>>>>>();
static_assert(same(p, {{0, 0, 1, -1}, {1, 1, 2, -1}, {2, 2, 3, -1}, {-1, 3, 4, 1}, {-1, 4, 5, 0}}));
static_assert(starts(p.gradient_storage().alias, {5, 4, 2, 4, 4, 5}));
static_assert(starts(p.gradient_storage().copies, {false, false, false, false, true}));
static_assert(starts(p.gradient_storage().adds, {false, false, false, false, false}));
static_assert(starts(p.feeds_backward(false).runs, {true, true, false, false, false}));
}  // namespace nested

// x + (x + f(x))
namespace twice {
constexpr program p = program_of<residual_of<residual_of<pipe<rms_norm, linear>>>>();
static_assert(same(p, {{0, 0, 1, -1}, {1, 1, 2, -1}, {-1, 2, 3, 0}, {-1, 3, 4, 0}}));
// The outer sum's skip has the result's rows; the inner sum adds to them.
static_assert(starts(p.gradient_storage().alias, {4, 1, 3, 3, 4}));
static_assert(starts(p.gradient_storage().copies, {false, false, false, true}));
static_assert(starts(p.gradient_storage().adds, {false, false, true, false}));
}  // namespace twice

// A read that sees all is cut in two: everything up to what it remembers, and everything with its
// read, where the layers before it run a second time.
namespace halves {
using block = residual_of<pipe<rms_norm, bidirectional, linear>>;
constexpr program first = program_of<block>(half::remember), second = program_of<block>(half::read);
static_assert(same(first, {{0, 0, 1, -1}, {1, 1, 2, -1}}));
static_assert(first.result == 0 && first.operator_count == 2);
static_assert(first.runs_forward(0) && !first.runs_forward(1) && first.remembers(1));
static_assert(first.lasts(0) && first.lasts(1) && !first.lasts(2));
static_assert(same(second, {{0, 0, 1, -1}, {1, 1, 2, -1}, {2, 2, 3, -1}, {-1, 3, 4, 0}}));
static_assert(second.runs_forward(1) && !second.remembers(1));
// The memory belongs to the cut between them.
static_assert(!first.holds_state() && !second.holds_state());
static_assert(first.split().forces_cut() && second.split().forces_cut());
static_assert(starts(first.feeds_backward(true).runs, {true, false}));
static_assert(starts(second.feeds_backward(false).runs, {true, true, false, false}));
}  // namespace halves

// The first layer itself.
namespace halves_alone {
constexpr program first = program_of<bidirectional>(half::remember);
static_assert(same(first, {{0, 0, 1, -1}}));
static_assert(first.result == 0 && first.lasts(0) && !first.runs_forward(0));
}  // namespace halves_alone

// Tokens, and parameters that are not trained.
static_assert(program_of<embedding>().operators[0].takes_tokens);
static_assert(!program_of<frozen_of<pipe<rms_norm, linear>>>().trains());
static_assert(program_of<pipe<frozen_of<rms_norm>, linear>>().trains());
static_assert(!program_of<residual_of<frozen_of<residual_of<linear>>>>().trains());
static_assert(program_of<tied_linear>().trains());

// What cannot be streamed is refused with the remedy.
static_assert(objection<residual_of<pipe<rms_norm, causal>>>() == nullptr);
static_assert(objection<residual_of<pipe<rms_norm, bidirectional, gated_recurrence>>>() == nullptr);
static_assert(objection<pipe<gated_recurrence, bidirectional>>() != nullptr);
static_assert(objection<residual_of<pipe<causal, bidirectional>>>() != nullptr);
static_assert(objection<pipe<bidirectional, bidirectional>>() != nullptr);
static_assert(objection<pipe<gated_recurrence, linear, bidirectional>>() != nullptr);

TEST_CASE("program: the leaves of an item are its operators, in order, with their training") {
  const auto leaves =
      leaves_of(residual(rms_norm(3) | frozen(linear(3, 4) | gelu()) | linear(4, 3)));
  static_assert(std::tuple_size_v<decltype(leaves)> == 4);
  CHECK(std::get<0>(leaves).layer.width == 3);
  CHECK(std::get<1>(leaves).layer.out == 4);
  CHECK(std::get<3>(leaves).layer.out == 3);
  CHECK(std::get<0>(leaves).trains);
  CHECK_FALSE(std::get<1>(leaves).trains);
  CHECK_FALSE(std::get<2>(leaves).trains);
  CHECK(std::get<3>(leaves).trains);
}

TEST_CASE("program: an objection names the remedy") {
  CHECK(std::string(objection<pipe<gated_recurrence, bidirectional>>())
            .find("a residual of its own") != std::string::npos);
}
