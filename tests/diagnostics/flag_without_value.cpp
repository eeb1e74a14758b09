// expect: takes_tokens, backward_reads_input, backward_reads_output, counts_flops and host_only are constants of the type: write static constexpr bool
#include <streambp/model/explain.hpp>

using namespace streambp;

struct layer {
  bool takes_tokens = true;
  void forward(auto& at, auto x, auto y) const;
  void backward(auto& at, auto x, auto y, auto dy, auto dx) const;
};

int main() { explain_layer<layer>(); }
