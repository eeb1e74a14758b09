// expect: a layer in heads(...) remembers, carries or sums over rows
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model = rms_norm(8) | heads(rms_norm(8), gated_recurrence(8, 4));
  explain_model<decltype(model)>();
}
