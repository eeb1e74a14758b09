// expect: a layer that sees all cannot carry: make what carries a layer of its own
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct state_tag {
  static constexpr const char* name = "state";
};

struct layer {
  static constexpr auto sees = reach::all;
  auto slots() const { return std::tuple{memory(k_tag{}, 8), carry(state_tag{}, 1, 8)}; }
  void remember(auto& at, auto x) const;
  void release(auto& at, auto x, auto dx) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
