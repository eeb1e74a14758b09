// expect: streambp: for_rows runs the host's code; say host_only = true
#include <streambp/primitives/rows.hpp>

using namespace streambp;

struct far : primitives::counting<float> {
  static constexpr bool is_host = false;
  bool counts_only() const { return true; }
  int* enter(const char*) { return nullptr; }
};

void look(far& on, view<float> y) {
  for_rows(on, y.rows, y.cols, [&](position i) { y(i, 0) = 0; });
}
