// expect: more than 47 layers form one section, which cannot be cut
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

const auto three = rms_norm(8) | rms_norm(8) | rms_norm(8);
const auto twelve = three | three | three | three;
const auto forty_eight = twelve | twelve | twelve | twelve;

int main() {
  const auto model = residual(forty_eight);
  explain_model<decltype(model)>();
}
