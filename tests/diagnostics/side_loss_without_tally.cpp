// expect: the layer has side_loss(at) but no tally to make it of
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  double side_loss(auto& at) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
