// expect: the model has more heads than there are losses, or fewer
#include <streambp/streambp.hpp>

using namespace streambp;

int main() {
  const auto model = embedding(16, 8) | linear(8, 16);
  const typed_plan<float> made_elsewhere;
  engine step(made_elsewhere, model, losses(cross_entropy{}, cross_entropy{}));
}
