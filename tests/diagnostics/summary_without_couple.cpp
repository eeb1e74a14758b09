// expect: the loss sums up tokens but does nothing with the sums
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  token_term summary(const row_statistics&, const label_place&) const;
};

int main() { explain_loss<loss>(); }
