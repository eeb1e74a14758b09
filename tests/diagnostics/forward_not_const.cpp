// expect: the layer has no forward: write auto forward(auto& at, auto x) const
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void forward(auto& at, auto x, auto y);
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
