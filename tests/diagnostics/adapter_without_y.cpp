// expect: the layer's backward cannot be called as backward(at, x, y, dy, dx)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct foreign {};

struct adapter {
  const foreign& module;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto dy, auto dx) const;
};

template <>
struct streambp::layer_traits<foreign> : adapted_traits<foreign, adapter> {};

int main() { explain_layer<foreign>(); }
