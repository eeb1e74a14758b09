// expect: the layer has no backward(at, x, y, dy, dx)
#include <streambp/streambp.hpp>

using namespace streambp;

struct mine {
  void forward(auto& at, auto x, auto y) const;
};

int main() {
  const auto model = embedding(16, 8) | mine{} | linear(8, 16);
  const typed_plan<float> made_elsewhere;
  engine step(made_elsewhere, model, cross_entropy{});
}
