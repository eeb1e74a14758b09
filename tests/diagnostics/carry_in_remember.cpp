// expect: a carry belongs into forward(at, x)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};
constexpr k_tag k{};
struct state_tag {
  static constexpr const char* name = "state";
};
constexpr state_tag state{};

struct layer {
  static constexpr auto sees = past;
  auto slots(position in) const { return std::tuple{memory(k, in), carry(state, 1, in)}; }
  void remember(auto& at, auto x) const { at.write(k, scan(x, x, at.states(state))); }
  auto forward(auto& at, auto x) const { return attend(x, at[k], at[k], {}); }
};

int main() { explain_layer<layer>(); }
