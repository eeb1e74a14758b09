// expect: a slot's tag has no name: give the tag's type a static constexpr const char* name
#include <streambp/model/explain.hpp>

using namespace streambp;

struct k_tag {};

struct layer {
  auto slots() const { return std::tuple{saved(k_tag{}, 8)}; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
