// expect: the loss's own loops touch rows, and the host does not reach the memory of this device
#include <streambp/model/explain.hpp>

using namespace streambp;

struct far {
  using scalar = float;
  static constexpr bool is_host = false;
};

struct squares {
  double rows(auto& on, position first_row, auto y) const;
};
struct squares_of_primitives : squares {
  static constexpr bool host_only = false;
};

static_assert(explain_loss<squares_of_primitives, far>());
static_assert(explain_loss<squares>());
static_assert(explain_loss<squares, far>());
