// expect: a read that sees all may follow, inside its residual, only layers that see their own row
#include <streambp/layers/attention.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/norm.hpp>
#include <streambp/schedule/explain_model.hpp>

using namespace streambp;

int main() {
  const auto model =
      rms_norm(8) | residual(gated_recurrence(8, 8) | bidirectional_attention({.features = 8}));
  explain_model<decltype(model)>();
}
