// expect: 'sees' says what a row may look at: write static constexpr auto sees = row, past or all
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  static constexpr int sees = 1;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
