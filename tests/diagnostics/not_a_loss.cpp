// expect: this type is no loss: give it term(statistics, place)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  double operator()(double logit) const;
};

int main() { explain_loss<loss>(); }
