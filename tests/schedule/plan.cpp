#include <streambp/schedule/plan.hpp>

#include <doctest/doctest.h>

#include "../core/lengths.hpp"

using namespace streambp;

TEST_CASE("bytes by place sum to the peak") {
  step_plan p;
  p.bytes = {1, 20, 300, 4000, 50000, 600000};
  CHECK(p.peak() == 654321);
}

TEST_CASE("the largest chunk may be any") {
  step_plan p;
  p.chunks = {0, 8, 24, 30};
  p.head_chunks = {0, 30};
  CHECK(p.chunk_count() == 3);
  CHECK(p.largest_chunk() == 16);
  CHECK(p.largest_head_chunk() == 30);
}

TEST_CASE("head chunks run over all rows, or inside every chunk") {
  const edges grains{0, 8, 16, 24, 32, 37};
  CHECK(head_chunk_edges(grains, {0, 24, 37}, 16, false) == edges{0, 16, 32, 37});
  CHECK(head_chunk_edges(grains, {0, 24, 37}, 16, true) == edges{0, 16, 24, 37});
  CHECK(head_chunk_edges(grains, {0, 24, 37}, 1, true) == grains);
  CHECK(head_chunk_edges(grains, {0, 24, 37}, 100, true) == edges{0, 24, 37});
}
