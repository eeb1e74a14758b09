// expect: the loss couples sums but does not say of what
#include <streambp/streambp.hpp>

using namespace streambp;

struct half_loss {
  double couple(std::span<const double> sums, std::span<double> slopes) const;
};

int main() {
  const auto p = plan(embedding(16, 8) | linear(8, 16), half_loss{}, packed::one(8));
  engine step(p, embedding(16, 8) | linear(8, 16), half_loss{});
}
