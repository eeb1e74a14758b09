// expect: slots() returns a std::tuple of slots
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

// One whose backward is derived.
struct layer {
  auto slots(position in) const { return parameter(k_tag{}, 1, in, ones); }
  auto forward(auto& at, auto x) const { return x * at[k_tag{}]; }
};

int main() { explain_layer<layer>(); }
