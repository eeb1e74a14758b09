// Where the host's sums of a step stand, by hand.
#include <streambp/engine/ledger.hpp>

#include <doctest/doctest.h>

#include <streambp/streambp.hpp>

#include "../core/lengths.hpp"

using namespace streambp;

namespace {

template <class Model>
step_plan plan_of(const Model& model, const packed& samples) {
  return planner<cpu::device<double>, Model, cross_entropy>(
             model, samples, {.head_chunk = 16, .features = 8, .grains = {8, 16}})
      .plain();
}
template <class Model>
section_list list_of(const Model& model) {
  return instance_list<Model>(model, 8);
}
// Whether the first of two views ends before the second begins.
template <class A, class B>
bool before(view<A> a, view<B> b) {
  return reinterpret_cast<const std::byte*>(a.data + a.rows * a.cols) <=
         reinterpret_cast<const std::byte*>(b.data);
}
std::size_t bytes_of(const section_list& list, const step_plan& p, coupled_heads couples) {
  arena nothing;
  ledger().place(nothing, list, p, couples);
  return nothing.used();
}

const auto trunk = residual(linear(8, 8));
const packed samples = packed_lengths({1, 29, 0, 31});

}  // namespace

TEST_CASE("one head: a coupled loss of tokens has sums and slopes of samples, and what it saw") {
  const auto model = trunk | linear(8, 5);
  const step_plan p = plan_of(model, samples);
  const section_list list = list_of(model);
  const std::size_t more = 2 * 64 + 61 * sizeof(row_statistics) + 32;
  CHECK(bytes_of(list, p, true) == bytes_of(list, p, false) + more);
  coupled_heads of_rows;
  of_rows.add(0, false);
  CHECK(bytes_of(list, p, of_rows) == bytes_of(list, p, false));
}

TEST_CASE("heads share the addresses of their rows and have sums of their own") {
  const auto one = trunk | heads(linear(8, 5));
  const auto two = trunk | heads(linear(8, 5), linear(8, 9));
  const step_plan p = plan_of(one, samples);
  const section_list list = list_of(two);
  const std::size_t bytes = bytes_of(list, p, false), grains = std::size_t(p.head_grains.size());
  // Values of grains, scales of samples; and which samples count in either.
  CHECK(bytes == bytes_of(list_of(one), p, false) + (grains * 8 + 63) / 64 * 64 + 64 + 64);
  host_block block(bytes);
  CHECK(block.bytes().size() == bytes);
  arena from(block.data(), bytes);
  ledger l;
  l.place(from, list, p, false);
  CHECK(from.high() == bytes);
  CHECK(l.heads[0].first.data == l.heads[1].first.data);
  CHECK(l.heads[0].slopes.data == l.heads[1].slopes.data);
  CHECK(before(l.heads[0].grain_values, l.heads[0].segment_scales));
  CHECK(before(l.heads[0].segment_scales, l.heads[1].grain_values));
  CHECK(before(l.heads[1].segment_scales, l.segment_counts));
  CHECK(before(l.segment_counts, l.heads[0].first));
  CHECK(l.section_values.rows == 0);
  CHECK(l.heads[0].segment_sums.rows == 0);
  coupled_heads second;
  second.add(1, true);
  CHECK(bytes_of(list, p, second) == bytes + 2 * 64 + 61 * sizeof(row_statistics) + 32);
}

TEST_CASE("a single head's scales say which samples count") {
  const auto model = trunk | linear(8, 5);
  const step_plan p = plan_of(model, samples);
  host_block block(bytes_of(list_of(model), p, false));
  arena from(block.data(), block.bytes().size());
  ledger l;
  l.place(from, list_of(model), p, false);
  CHECK(l.segment_counts.data == l.heads[0].segment_scales.data);
  CHECK(l.segment_counts.rows == 4);
}

TEST_CASE("a last row of a parent has a target in each child") {
  const auto model = trunk | linear(8, 5);
  const packed family({0, 20, 30, 40}, {-1, 0, 0});
  const step_plan p = plan_of(model, family);
  arena nothing;
  ledger l;
  l.place(nothing, list_of(model), p, false);
  CHECK(l.heads[0].first.rows == p.largest_head_chunk() + 1);
  CHECK(l.heads[0].targets.rows == p.largest_head_chunk() + 2);
}

TEST_CASE("side losses have a value of each section") {
  const auto model = trunk |
                     mixture_of_experts({.features = 8, .inner = 4, .experts = 3, .balance = 0.1}) |
                     linear(8, 5);
  const step_plan p = plan_of(model, samples);
  arena nothing;
  ledger l;
  l.place(nothing, list_of(model), p, false);
  CHECK(l.section_values.rows == 2);
}
