#include <streambp/cpu/side_by_side.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "carried.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

// Rows by call, in order; one range of units, one thread.
using call_list = std::vector<std::vector<position>>;

const auto into = [](call_list& calls) {
  return [&](const rows_abreast& now, position, position) {
    calls.emplace_back(now.row, now.row + now.count);
  };
};

}  // namespace

TEST_CASE("a step takes a row of every piece, in fours") {
  const packed samples({0, 3, 5, 5, 6, 8, 9});
  workers<float> on(1);
  call_list up, down;
  steps_ascending(on, piece_list(samples, {0, 9}), 8, into(up));
  CHECK(up == call_list{{0, 3, 5, 6}, {8}, {1, 4, 7}, {2}});
  steps_descending(on, piece_list(samples, {0, 9}), 8, into(down));
  CHECK(down == call_list{{2}, {7, 4, 1}, {8, 6, 5, 3}, {0}, {7, 5, 4, 2}, {-1}});
}

TEST_CASE("completions wait for the prompt that they go on from, and go first on the way back") {
  const packed samples({0, 2, 3, 5, 6}, {-1, 0, 0, -1});
  workers<float> on(1);
  call_list up, down;
  steps_ascending(on, piece_list(samples, {0, 6}), 8, into(up));
  CHECK(up == call_list{{0, 5}, {1}, {2, 3}, {4}});
  steps_descending(on, piece_list(samples, {0, 6}), 8, into(down));
  CHECK(down == call_list{{4}, {3, 2}, {2, 1}, {1}, {5, 0}, {4, -1}});
  // The rest of one that began before the chunk waits for nothing.
  up.clear();
  steps_ascending(on, piece_list(samples, {4, 6}), 8, into(up));
  CHECK(up == call_list{{0, 1}});
}

TEST_CASE("every unit is taken once a step") {
  const packed samples({0, 1});
  workers<double> on(2);
  for (const position units : {1, 31, 32, 33, 100}) {
    std::vector<int> taken(std::size_t(units), 0);
    steps_ascending(on, piece_list(samples, {0, 1}), units,
                    [&](const rows_abreast&, position first, position count) {
                      for (position j = first; j < first + count; ++j) ++taken[std::size_t(j)];
                    });
    CHECK(taken == std::vector<int>(std::size_t(units), 1));
  }
}

TEST_CASE("the rows before: a piece's own, its state's, or zeros") {
  const packed samples({0, 2, 4});
  const guarded<float> y(4, 3, 1, 1., 0.), initial(1, 6, 2, 1., 0.);
  guarded<float> before(4, 3);
  workers<float> on(2);
  const carried<float> with(samples, {0, 4}, 6, *initial), without(samples, {0, 4}, 6);
  rows_before(on, with.pieces(0), with.at(0), *y, *before);
  CHECK(error_of(*before, [&](position i, position j) {
          return i % 2 == 0 ? initial(0, j) : y(i - 1, j);
        }) == 0);
  rows_before(on, without.pieces(0), without.at(0), *y, *before);
  CHECK(error_of(*before, [&](position i, position j) { return i % 2 == 0 ? 0 : y(i - 1, j); }) ==
        0);
  CHECK(before.intact());
}
