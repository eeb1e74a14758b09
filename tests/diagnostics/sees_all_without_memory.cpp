// expect: the layer says sees = all but has no memory to read
#include <streambp/model/explain.hpp>

using namespace streambp;

struct state_tag {
  static constexpr const char* name = "state";
};

struct layer {
  static constexpr auto sees = reach::all;
  auto slots() const { return std::tuple{carry(state_tag{}, 1, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
