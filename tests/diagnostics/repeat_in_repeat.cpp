// expect: repeat(n, f) stands at the top level of a model
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model = repeat(3, rms_norm(8) | repeat(2, rms_norm(8)));
  explain_model<decltype(model)>();
}
