// expect: the layer has a tally but no side_loss(at) to make a loss of it
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  auto slots() const { return std::tuple{tally(k_tag{}, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
