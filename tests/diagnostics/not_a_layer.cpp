// expect: this type is no layer: give it forward(at, x, y) and backward(at, x, y, dy, dx)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  int width = 8;
};

int main() { explain_layer<layer>(); }
