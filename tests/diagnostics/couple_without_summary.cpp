// expect: the loss couples sums but does not say of what
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  double couple(std::span<const double> sums, std::span<double> slopes) const;
};

int main() { explain_loss<loss>(); }
