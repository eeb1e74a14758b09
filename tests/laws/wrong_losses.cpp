#include "broken.hpp"

namespace streambp {
namespace {

// The slope in the target has the wrong size.
struct wrong_slope {
  token_term term(const row_statistics& r, const token&) const {
    return {r.lse - r.target, {1, -0.9, 0}};
  }
};
// Tokens count by their place among all rows.
struct counts_rows {
  token_term term(const row_statistics& r, const token& t) const {
    const double w = 1 + 0.01 * double(t.row);
    return {w * (r.lse - r.target), {w, -w, 0}};
  }
};
// A constant for each token, whatever is scored. Row losses need no labels.
struct counts_calls {
  mutable double calls = 0;
  token_term term(const row_statistics& r, const token&) const {
    calls += 1e-3;
    return {r.lse - r.target + calls, {1, -1, 0}};
  }
};

TEST_CASE("a wrong loss breaks the law that speaks of it") {
  const laws::setting s = laws::rows(37, 6);
  CHECK(laws::broken(laws::hold_loss(wrong_slope{}, s)) == "central differences");
  CHECK(laws::broken(laws::hold_loss(counts_rows{}, s)) == "batch-independence");
  CHECK(laws::broken(laws::hold_loss(counts_calls{}, s)) == "recomputation has no side effects");
}

}  // namespace
}  // namespace streambp
