// expect: the layer's backward cannot be called as backward(at, x, y, dy, dx)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
