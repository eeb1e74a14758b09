// expect: this type is no loss
#include <streambp/streambp.hpp>

using namespace streambp;

int main() {
  const auto model = embedding(16, 8) | heads(linear(8, 16), linear(8, 4));
  const auto p = plan(model, losses(cross_entropy{}, 3), packed::one(8));
}
