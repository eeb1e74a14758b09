// expect: heads(...) ends a model: layers stand before it and none behind it
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model = rms_norm(8) | residual(heads(rms_norm(8)));
  explain_model<decltype(model)>();
}
