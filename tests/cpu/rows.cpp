#include <streambp/cpu/rows.hpp>

#include <doctest/doctest.h>

#include <atomic>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

TEST_CASE("each row and each column is taken once") {
  for (int threads : {1, 2}) {
    workers<float> on(threads);
    for (position rows : {0, 1, 5, 1000})
      for (position cols : {1, 63, 64, 65, 20000}) {
        std::vector<int> row_seen(std::size_t(rows), 0), column_seen(std::size_t(cols), 0);
        for_rows(on, rows, cols, [&](position i) { ++row_seen[std::size_t(i)]; });
        for_column_ranges(on, cols, [&](position first, position count) {
          for (position j = first; j < first + count; ++j) ++column_seen[std::size_t(j)];
        });
        CHECK(std::count(row_seen.begin(), row_seen.end(), 1) == rows);
        CHECK(std::count(column_seen.begin(), column_seen.end(), 1) == cols);
      }
  }
}

TEST_CASE("rows come with their piece") {
  const packed samples({0, 1, 1, 400, 1003});
  workers<float> on(2);
  for (row_range chunk :
       {row_range{0, 1003}, row_range{0, 1}, row_range{1, 400}, row_range{399, 1003}}) {
    std::vector<position> place(std::size_t(chunk.rows()), -1);
    std::atomic<position> calls = 0;
    for_rows(on, piece_list(samples, chunk, 5), 512, [&](const piece& p, position row) {
      place[std::size_t(row)] = p.start + (row - p.row);
      ++calls;
    });
    CHECK(calls == chunk.rows());
    for (position i = 0; i < chunk.rows(); ++i) {
      const position row = chunk.first + i;
      CHECK(place[std::size_t(i)] == row - samples.segment(samples.segment_at(row)).first);
    }
  }
}

TEST_CASE_TEMPLATE("row sums go grain by grain, last grain first, in any chunks", S, float,
                   double) {
  const std::vector<position> edges{0, 5, 12, 13, 30};
  for (position cols : widths) {
    const guarded<S> x(30, cols, 1, 1, 0);
    const auto add = [&](workers<S>& on, std::size_t first, std::size_t last, guarded<S>& y) {
      const view<const S> rows = (*x).rows_in({edges[first], edges[last]});
      add_row_sums(on, std::span(edges).subspan(first, last - first + 1), cols, (*y).data,
                   [&](position i, position j, auto n) { return load<S>(rows.row(i) + j, n); });
    };
    workers<S> single(1), pair(2);
    guarded<S> whole_sum(1, cols, 2, 1, 0), chunked = whole_sum, threaded = whole_sum,
                                            naive = whole_sum;
    for (std::size_t g = 4; g-- > 0;)
      for (position j = 0; j < cols; ++j) {
        S total = 0;
        for (position i = edges[g]; i < edges[g + 1]; ++i) total += x(i, j);
        naive(0, j) += total;
      }
    add(single, 0, 4, whole_sum);
    add(single, 3, 4, chunked);
    add(single, 1, 3, chunked);
    add(single, 0, 1, chunked);
    add(pair, 0, 4, threaded);
    CHECK(same_bits(whole_sum, naive));
    CHECK(same_bits(whole_sum, chunked));
    CHECK(same_bits(whole_sum, threaded));
    CHECK(whole_sum.intact());
  }
}
