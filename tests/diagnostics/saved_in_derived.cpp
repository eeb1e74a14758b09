// expect: a forward whose backward is derived names parameters and memory as at[tag]
#include <streambp/model/explain.hpp>

using namespace streambp;

struct h_tag {
  static constexpr const char* name = "h";
};
constexpr h_tag h{};

struct layer {
  auto slots(position in) const { return std::tuple{saved(h, in)}; }
  auto forward(auto& at, auto x) const { return x * at[h]; }
};

int main() { explain_layer<layer>(); }
