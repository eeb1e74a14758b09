// expect: the loss's average is over::tokens, over::samples or over::nothing
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  bool average = true;
  token_term term(const row_statistics&, const label_place&) const;
};

int main() { explain_loss<loss>(); }
