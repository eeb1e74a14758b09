// expect: a loss is of one kind: it has term alone, or summary and couple, or rows alone
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  token_term term(const row_statistics&, const label_place&) const;
  double rows(auto& on, position first_row, auto y) const;
};

int main() { explain_loss<loss>(); }
