// expect: a layer that takes tokens is the first of a model
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model = rms_norm(8) | embedding(16, 8);
  explain_model<decltype(model)>();
}
