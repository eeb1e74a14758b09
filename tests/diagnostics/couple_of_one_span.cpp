// expect: the loss's couple cannot be called as couple(sums, slopes)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  token_term summary(const row_statistics&, const label_place&) const;
  double couple(std::span<double> sums) const;
};

int main() { explain_loss<loss>(); }
