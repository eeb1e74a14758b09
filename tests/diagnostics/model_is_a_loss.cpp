// expect: this type is no layer
#include <streambp/losses/cross_entropy.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model = cross_entropy{};
  explain_model<decltype(model)>();
}
