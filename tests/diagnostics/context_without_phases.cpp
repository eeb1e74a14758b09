// expect: the layer reads rows of another stream but does not write them
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {
  static constexpr const char* name = "k";
};

struct layer {
  auto slots() const { return std::tuple{context(k_tag{}, 8)}; }
  void remember_context(auto& at, auto c) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
