// expect: at.write is for memory slots, at.states and at.recur for carries
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};
constexpr k_tag k{};

struct layer {
  auto slots(position in) const { return std::tuple{parameter(k, 1, in, ones)}; }
  auto forward(auto& at, auto x) const {
    return at.recur(k, [&](auto before) { return 0.5 * before + x; });
  }
};

int main() { explain_layer<layer>(); }
