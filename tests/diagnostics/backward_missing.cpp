// expect: the layer has no backward(at, x, y, dy, dx)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void forward(auto& at, auto x, auto y) const;
};

int main() { explain_layer<layer>(); }
