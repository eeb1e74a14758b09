// expect: the layer has a total, which every row of its segment reads: write sees = all
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  static constexpr auto sees = past;
  auto slots() const { return std::tuple{total(k_tag{}, 8)}; }
  void remember(auto& at, auto x) const;
  void release(auto& at, auto x, auto dx) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
