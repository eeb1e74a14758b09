// expect: streambp: this layer's own loops touch rows, and the host does not reach the memory of this
#include <streambp/engine/door.hpp>
#include <streambp/primitives/rows.hpp>

using namespace streambp;

struct far : primitives::counting<float> {
  static constexpr bool is_host = false;
  bool counts_only() const { return true; }
  int* enter(const char*) { return nullptr; }
};

struct doubled {
  static constexpr bool counts_flops = true, host_only = true;
  void forward(auto& at, auto x, auto y) const {
    for_rows(at.on, x.rows, x.cols, [&](position i) { y(i, 0) = 2 * x(i, 0); });
  }
  void backward(auto&, auto, auto, auto, auto) const {}
};

int main() { return sizeof(site<far, doubled>) > 0; }
