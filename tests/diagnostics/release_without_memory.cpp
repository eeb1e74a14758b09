// expect: the layer has release(at, x, dx) but no memory whose gradient it could take
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void release(auto& at, auto x, auto dx) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
