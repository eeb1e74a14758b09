// expect: the layer has memory but no release(at, x, dx) to take its gradient back to x
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  static constexpr auto sees = past;
  auto slots() const { return std::tuple{memory(k_tag{}, 8)}; }
  void remember(auto& at, auto x) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
