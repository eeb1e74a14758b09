#include <streambp/primitives/carry_rows.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "core/lengths.hpp"

using namespace streambp;

namespace {

// Up to 8 segments, empty ones among them; about half go on from an earlier one.
packed random_family(dice& draw) {
  std::vector<position> offsets{0}, parents;
  const position segments = 1 + draw(8);
  for (position s = 0; s < segments; ++s) {
    offsets.push_back(offsets.back() + (draw(4) == 0 ? 0 : 1 + draw(9)));
    position parent = draw(2) == 0 || s == 0 ? -1 : draw(s);
    if (parent >= 0 && (parents[std::size_t(parent)] >= 0 ||
                        offsets[std::size_t(parent)] == offsets[std::size_t(parent) + 1]))
      parent = -1;
    parents.push_back(parent);
  }
  return {offsets, parents};
}

std::vector<position> random_chunks(dice& draw, position tokens) {
  std::vector<position> edges{0};
  while (edges.back() < tokens) edges.push_back(std::min(tokens, edges.back() + 1 + draw(7)));
  return edges;
}

// A recurrence whose state is a number: one per place where a state may stand, chunk edges
// included.
struct number_states {
  const packed& samples;
  const std::vector<position>& edges;
  bool with_initial;
  std::vector<double> states, d_states, ends, d_ends;
  double initial = 0.5, d_initial = 0;

  number_states(const packed& samples, const std::vector<position>& edges, bool with_initial)
      : samples(samples),
        edges(edges),
        with_initial(with_initial),
        states(edges.size(), -1),
        d_states(edges.size(), -1),
        ends(std::size_t(samples.parent_count()), -1),
        d_ends(ends.size(), 0) {}

  carry_rows<double> at(std::size_t c) {
    const auto row = [](std::vector<double>& of, std::size_t i) {
      return view<double>(&of[i], 1, 1);
    };
    const auto rows = [](std::vector<double>& of) {
      return view<double>(of.data(), position(of.size()), 1);
    };
    return {&samples,
            {edges[c], edges[c + 1]},
            row(states, c),
            row(d_states, c),
            row(states, c + 1),
            row(d_states, c + 1),
            with_initial ? view<const double>(&initial, 1, 1) : view<const double>(),
            with_initial ? view<double>(&d_initial, 1, 1) : view<double>(),
            rows(ends),
            rows(d_ends)};
  }
  piece_list pieces(std::size_t c) const { return {samples, {edges[c], edges[c + 1]}}; }
};

// The packed row behind which a piece starts: of its own segment, or its parent's last; -1: none.
position row_before(const packed& samples, const piece& p) {
  if (p.start > 0) return samples.segment(p.segment).first + p.start - 1;
  const position parent = samples.parent(p.segment);
  return parent < 0 ? -1 : samples.segment(parent).last - 1;
}

template <class F>
void each_family(const F& f) {
  dice draw(3);
  for (int trial = 0; trial < 500; ++trial) {
    const packed samples = random_family(draw);
    if (samples.tokens() == 0) continue;
    const auto edges = random_chunks(draw, samples.tokens());
    for (const bool with_initial : {false, true}) f(number_states(samples, edges, with_initial));
  }
}

}  // namespace

// The state behind a row is the row's number.
TEST_CASE("carry rows: ascending, a piece starts where its segment or its parent stopped") {
  position continued = 0;
  each_family([&](number_states n) {
    for (std::size_t c = 0; c + 1 < n.edges.size(); ++c)
      for (const piece& p : n.pieces(c)) {
        const auto states = n.at(c);
        const double* before = states.before(p);
        const position row = row_before(n.samples, p);
        if (row >= 0) {
          REQUIRE(before != nullptr);
          CHECK(*before == double(row));
          continued += p.start == 0;
        } else {
          CHECK((before == nullptr) == !n.with_initial);
          if (before) CHECK(*before == n.initial);
        }
        const double last = double(n.edges[c] + p.last() - 1);
        for (double* to : {states.kept(p), states.handed_on(p)})
          if (to) *to = last;
      }
  });
  CHECK(continued > 500);
}

// Each row adds 1 to the gradient of the state that it starts from: what arrives at a state is how
// many rows have it behind them.
TEST_CASE("carry rows: descending, a state's gradient gathers all that started from it") {
  each_family([&](number_states n) {
    for (std::size_t c = n.edges.size() - 1; c-- > 0;)
      n.pieces(c).descending([&](const piece& p) {
        const auto states = n.at(c);
        const double* after = states.d_after(p);
        const double passed = (after ? *after : 0) + double(p.rows);
        double* to = states.d_before(p);
        if (p.start > 0) {
          REQUIRE(to != nullptr);
          *to = 0;  // as the engine hands it down
        }
        if (to) *to += passed;
      });
    CHECK(n.d_initial == (n.with_initial ? double(n.samples.tokens()) : 0));
    for (position s = 0; s < n.samples.segments(); ++s) {
      if (n.samples.parent_number(s) < 0) continue;
      position of_children = 0;
      for (position child = 0; child < n.samples.segments(); ++child)
        if (n.samples.parent(child) == s) of_children += n.samples.segment(child).rows();
      CHECK(n.d_ends[std::size_t(n.samples.parent_number(s))] == double(of_children));
    }
  });
}

TEST_CASE("carry rows: nothing is handed over the end of a sample") {
  const packed samples({0, 4, 9});
  const std::vector<position> edges{0, 4, 6, 9};
  number_states n(samples, edges, true);
  const piece whole = *n.pieces(0).begin(), middle = *n.pieces(1).begin(),
              end = *n.pieces(2).begin();
  CHECK(n.at(0).handed_on(whole) == nullptr);
  CHECK(n.at(0).kept(whole) == nullptr);
  CHECK(n.at(0).d_after(whole) == nullptr);
  CHECK(n.at(1).handed_on(middle) == &n.states[2]);
  CHECK(n.at(1).d_after(middle) == &n.d_states[2]);
  CHECK(n.at(2).before(end) == &n.states[2]);
  CHECK(n.at(2).d_before(end) == &n.d_states[2]);
  CHECK(n.at(2).handed_on(end) == nullptr);
}
