// expect: the layer has remember_context(at, c) but no slot for it to write
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  void remember_context(auto& at, auto c) const;
  void release_context(auto& at, auto c, auto dc) const;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
