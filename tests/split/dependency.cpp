#include <streambp/split/dependency.hpp>

#include <doctest/doctest.h>

using namespace streambp;

namespace {

// Calls f with every dependency there is.
template <class F>
constexpr bool for_all(F f) {
  bool holds = true;
  for (const reach sees : {row, past, all})
    for (const bool carries : {false, true})
      for (const bool remembers : {false, true})
        holds = holds && f(dependency{sees, carries, remembers});
  return holds;
}

constexpr dependency pointwise{}, recurrence{past, true, false}, causal{past, false, true},
    bidirectional{all, false, true};

}  // namespace

// A chain sees as far as its farthest part and holds what any part holds.
static_assert(then(pointwise, causal) == causal);
static_assert(then(recurrence, causal) == dependency{past, true, true});
static_assert(then(causal, bidirectional) == bidirectional);
static_assert(then(bidirectional, recurrence) == dependency{all, true, true});

static_assert(!pointwise.stateful() && recurrence.stateful() && causal.stateful());
static_assert(bidirectional.forces_cut() && !causal.forces_cut() && !recurrence.forces_cut());

// Composition: pointwise changes nothing, brackets and repetition do not matter.
static_assert(for_all([](dependency a) {
  return then(a, pointwise) == a && then(pointwise, a) == a;
}));
static_assert(for_all([](dependency a) { return then(a, a) == a; }));
static_assert(for_all([](dependency a) {
  return for_all([=](dependency b) {
    return for_all([=](dependency c) { return then(then(a, b), c) == then(a, then(b, c)); });
  });
}));

// Nothing that an operator needs is lost in a chain.
static_assert(for_all([](dependency a) {
  return for_all([=](dependency b) {
    const dependency c = then(a, b);
    return c.forces_cut() == (a.forces_cut() || b.forces_cut()) &&
           c.stateful() == (a.stateful() || b.stateful());
  });
}));

TEST_CASE("dependency: reaches are ordered, from a row to all") {
  CHECK(row < past);
  CHECK(past < all);
}
