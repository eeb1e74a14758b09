// expect: two slots of the layer have the same tag: give each slot a tag type of its own
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  auto slots() const { return std::tuple{saved(k_tag{}, 8), scratch(k_tag{}, 4)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
