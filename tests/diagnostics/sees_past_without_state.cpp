// expect: the layer says sees = past but has neither memory nor carry to see it through
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  static constexpr auto sees = past;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
