// expect: the model has more heads than there are losses, or fewer
#include <streambp/streambp.hpp>

using namespace streambp;

int main() {
  const auto model = embedding(16, 8) | heads(linear(8, 16), linear(8, 4));
  const auto p = plan(model, cross_entropy{}, packed::one(8));
}
