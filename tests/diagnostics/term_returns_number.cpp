// expect: the loss's term cannot be called as term(statistics, place): write token_term
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  double term(const row_statistics&, const label_place&) const;
};

int main() { explain_loss<loss>(); }
