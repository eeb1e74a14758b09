// What later rows pass down, against a loop over entries.
#include <streambp/cpu/passed_down.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../core/lengths.hpp"

using namespace streambp;

TEST_CASE("rows abreast begin with what stands behind them, and take their next rows' gates") {
  constexpr position units = 19, gates = 7, rows = 9, first = 2, some = 13;
  dice draw{5};
  const auto numbers = [&](position n) {
    std::vector<double> all;
    for (position i = 0; i < n; ++i) all.push_back(double(draw(200)) / 100 - 1);
    return all;
  };
  const auto w = numbers(gates * units), x = numbers(rows * gates), state = numbers(units);
  auto dh = numbers(rows * units);
  const view<double> all{dh.data(), rows, units};
  const auto before = dh;

  // A piece's last row, one in the middle of a piece, and the place before a piece of rows.
  const packed samples = packed_lengths({3, 4, 2});
  std::vector<piece> pieces;
  for (const piece p : piece_list(samples, {0, rows})) pieces.push_back(p);
  REQUIRE(pieces.size() == 3);
  cpu::rows_abreast now;
  for (const auto& [of, row] : {std::pair(0, 2), std::pair(1, 4), std::pair(2, 6)}) {
    now.of[now.count] = pieces[std::size_t(of)];
    now.row[now.count++] = row;
  }
  now.row[2] = 6;  // one before the row 7 where its piece begins
  REQUIRE(now.ends(0));

  cpu::passed_down<double> passed(now, all, first, some, [&](int r) -> const double* {
    return r == 0 ? state.data() : nullptr;
  });
  CHECK(passed.count == 2);
  passed.add_mixed(view<const double>{w.data(), gates, units}.middle_cols(first, some),
                   {x.data(), rows, gates});

  CHECK(passed.to[0] == all.row(2) + first);
  CHECK(passed.to[1] == all.row(4) + first);
  CHECK((passed.to[2] < dh.data() || passed.to[2] >= dh.data() + rows * units));
  for (int r = 0; r < 3; ++r)
    for (position j = 0; j < some; ++j) {
      double wanted = r == 0 ? state[std::size_t(first + j)] : 0;
      if (r > 0)
        for (position g = 0; g < gates; ++g)
          wanted +=
              x[std::size_t((now.row[r] + 1) * gates + g)] * w[std::size_t(g * units + first + j)];
      CHECK(passed.to[r][j] == doctest::Approx(wanted).epsilon(1e-12));
    }
  // No other entry is written.
  for (position i = 0; i < rows; ++i)
    for (position j = 0; j < units; ++j)
      if ((i != 2 && i != 4) || j < first || j >= first + some)
        CHECK(all(i, j) == before[std::size_t(i * units + j)]);
}
