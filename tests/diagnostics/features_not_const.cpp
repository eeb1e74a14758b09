// expect: features cannot be called: write position features(position in) const
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  position features(position in) { return 2 * in; }
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
