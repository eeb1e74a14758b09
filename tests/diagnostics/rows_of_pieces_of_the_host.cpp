// expect: streambp: for_rows runs the host's code; say host_only = true
#include <streambp/primitives/rows.hpp>

using namespace streambp;

struct far : primitives::counting<float> {
  static constexpr bool is_host = false;
  bool counts_only() const { return true; }
  int* enter(const char*) { return nullptr; }
};

void look(far& on, const piece_list& pieces, view<float> y) {
  for_rows(on, pieces, y.cols, [&](const piece&, position i) { y(i, 0) = 0; });
}
