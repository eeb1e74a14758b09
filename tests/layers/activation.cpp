#include <streambp/layers/activation.hpp>

#include "reference.hpp"

namespace streambp {
namespace {

TEST_CASE("activations keep the laws") {
  for (const activate& f : {gelu(), gelu_tanh(), silu(), relu(), activate{activation::sigmoid},
                            activate{activation::tanh}}) {
    CAPTURE(int(f.kind));
    CHECK(laws::hold(f, laws::rows(37, 5)));
  }
}

TEST_CASE("activations are PyTorch's") {
  check_against("gelu", gelu());
  check_against("gelu_tanh", gelu_tanh());
}

}  // namespace
}  // namespace streambp
