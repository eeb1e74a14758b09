// expect: the loss's rows cannot be called as rows(on, first_row, y)
#include <streambp/model/explain.hpp>

using namespace streambp;

struct loss {
  double rows(auto& on, auto y) const;
};

int main() { explain_loss<loss>(); }
