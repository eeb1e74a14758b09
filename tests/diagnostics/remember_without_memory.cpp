// expect: the layer has remember(at, x) but no memory to write
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void remember(auto& at, auto x) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
