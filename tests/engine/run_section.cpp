// What runs at one chunk, in which order, for each reason to visit it: whole lists of calls.
#include <streambp/engine/run_section.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <streambp/model/compose.hpp>
#include <streambp/schedule/section.hpp>
#include <streambp/streambp.hpp>
#include <string>
#include <vector>

using namespace streambp;

namespace {

using calls = std::vector<std::string>;
calls log;

struct memory_tag {};
struct carry_tag {};

// A layer that notes its calls: `f` forward, `f-` where the output is not wanted, `r` remember,
// `b` backward, `g` release, each with its letter.
template <char Name, class Slots = std::tuple<>>
struct noting {
  static constexpr bool backward_reads_output = false;
  constexpr Slots slots() const { return {}; }
  static void note(const char* what) { log.push_back(std::string(what) + Name); }
  void forward(auto& at, auto, auto) const { note(at.wants_output ? "f" : "f-"); }
  void backward(auto&, auto, auto, auto, auto) const { note("b"); }
  void remember(auto&, auto) const { note("r"); }
  void release(auto&, auto, auto) const { note("g"); }
};
using memories = std::tuple<slot<memory_tag, slot_kind::memory>>;
template <char Name>
struct causal : noting<Name, memories> {
  static constexpr reach sees = past;
};
template <char Name>
struct sees_all : noting<Name, memories> {
  static constexpr reach sees = all;
};
template <char Name>
struct recurrent : noting<Name, std::tuple<slot<carry_tag, slot_kind::carry>>> {};

// The calls of a section's visit; `backward` after it if wanted.
template <half Part = half::whole, class Item>
calls visited(const Item& item, const visit& why, bool backward = false) {
  const section<Item, Part, 0> own{leaves_of(item)};
  section_cell<double> cell;
  cell.slots.resize(program::most);
  cpu::device<double> on(1);
  const packed samples = packed::one(4);
  const position edges[] = {0, 4};
  chunk_place at;
  at.rows = {0, 4};
  at.samples = &samples;
  at.grains = edges;
  const view<double> rows(nullptr, 4, 0);
  log.clear();
  if (backward)
    run_backward(on, own, cell, at, 0, {{}, rows}, rows, rows, why);
  else
    run_forward(on, own, cell, at, 0, {{}, rows}, rows, why);
  return log;
}

struct tally_tag {};
template <char Name>
struct counting : noting<Name, std::tuple<slot<tally_tag, slot_kind::tally>>> {
  double side_loss(auto&) const { return 0; }
};

const auto attention_like = residual(noting<'a'>{} | causal<'m'>{} | noting<'c'>{});
const auto recurrence_like = noting<'a'>{} | recurrent<'h'>{} | noting<'c'>{};
const auto halved = residual(noting<'a'>{} | sees_all<'m'>{} | noting<'c'>{});

}  // namespace

TEST_CASE("a first forward remembers and gives its result") {
  CHECK(visited(attention_like, {}) == calls{"fa", "rm", "fm", "fc"});
  CHECK(visited(recurrence_like, {}) == calls{"fa", "fh", "fc"});
}

TEST_CASE("a rebuild runs what feeds memories and carries, and no more") {
  CHECK(visited(attention_like, {purpose::rebuild, false}) == calls{"fa", "rm"});
  CHECK(visited(recurrence_like, {purpose::rebuild, false}) == calls{"fa", "f-h"});
  CHECK(visited(recurrence_like | causal<'m'>{}, {purpose::rebuild, false}) ==
        calls{"fa", "fh", "fc", "rm"});
}

TEST_CASE("a replay runs what backward reads; outputs that nobody reads are not wanted") {
  CHECK(visited(attention_like, {purpose::replay, false}) == calls{"fa", "fm", "f-c"});
  CHECK(visited(attention_like, {purpose::replay_rebuild}) == calls{"fa", "rm", "fm", "fc"});
}

TEST_CASE("backward runs in reverse; a memory is released after its reader") {
  CHECK(visited(attention_like, {purpose::backward}, true) == calls{"bc", "bm", "gm", "ba"});
  CHECK(visited(recurrence_like, {purpose::backward}, true) == calls{"bc", "bh", "ba"});
}

TEST_CASE("the halves of a read that sees all: layers before it run in both, the rest in one") {
  CHECK(visited<half::remember>(halved, {}) == calls{"fa", "rm"});
  CHECK(visited<half::read>(halved, {}) == calls{"fa", "fm", "fc"});
  CHECK(visited<half::read>(halved, {purpose::backward}, true) == calls{"bc", "bm", "ba"});
  CHECK(visited<half::remember>(halved, {purpose::backward}, true) == calls{"gm", "ba"});
}

TEST_CASE("a tally is added to in the first forward, wanted or not, and never again") {
  const auto item = noting<'a'>{} | counting<'t'>{} | noting<'c'>{};
  CHECK(visited(item, {purpose::first_state, false}) == calls{"fa", "f-t"});
  CHECK(visited(item, {purpose::rebuild, false}).empty());
}

TEST_CASE("a sum's gradient is its branch's and its own, whatever its rows held before") {
  const auto item = residual(gelu());
  using type = section<std::decay_t<decltype(item)>, half::whole, 0>;
  const type own{leaves_of(item)};
  const double xs[] = {-1.5, 0.25}, dys[] = {3, -2};
  std::vector<double> x(xs, xs + 2), dy(dys, dys + 2), branch(2, std::nan(""));
  section_cell<double> cell;
  cell.gradient[1] = {branch.data(), 1, 2};
  cpu::device<double> on(1);
  const packed samples = packed::one(1);
  const position edges[] = {0, 1};
  chunk_place at;
  at.rows = {0, 1};
  at.samples = &samples;
  at.grains = edges;
  const view<double> dx =
      run_backward(on, own, cell, at, 0, {{}, view<double>{x.data(), 1, 2}}, view<double>{},
                   view<double>{dy.data(), 1, 2}, visit{purpose::backward});
  const auto y = [](double v) { return v + v * std::erfc(-v / std::sqrt(2.)) / 2; };
  for (position j = 0; j < 2; ++j) {
    const double h = 1e-6, slope = (y(xs[j] + h) - y(xs[j] - h)) / (2 * h);
    CHECK(dx(0, j) == doctest::Approx(dys[j] * slope).epsilon(1e-8));
  }
}
