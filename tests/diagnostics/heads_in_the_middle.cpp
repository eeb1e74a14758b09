// expect: heads(...) ends a model: layers stand before it and none behind it
#include <streambp/streambp.hpp>

using namespace streambp;

int main() {
  const auto model = embedding(16, 8) | heads(linear(8, 8), linear(8, 4)) | linear(8, 16);
  const auto p = plan(model, losses(cross_entropy{}, cross_entropy{}), packed::one(8));
}
