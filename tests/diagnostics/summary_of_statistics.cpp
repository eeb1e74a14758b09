// expect: the loss's summary cannot be called as summary(statistics, place)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  token_term summary(const row_statistics&) const;
  double couple(std::span<const double> sums, std::span<double> slopes) const;
};

int main() { explain_loss<loss>(); }
