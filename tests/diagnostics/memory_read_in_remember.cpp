// expect: remember writes memory by at.write(tag, rows)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};
constexpr k_tag k{};

struct layer {
  static constexpr auto sees = past;
  auto slots(position in) const { return std::tuple{memory(k, in)}; }
  void remember(auto& at, auto) const { at.write(k, at[k]); }
  auto forward(auto& at, auto x) const { return attend(x, at[k], at[k], {}); }
};

int main() { explain_layer<layer>(); }
