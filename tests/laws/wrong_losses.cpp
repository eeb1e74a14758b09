#include "broken.hpp"

namespace streambp {
namespace {

// The slope in the target has the wrong size.
struct wrong_slope {
  token_term term(const row_statistics& r, const label_place&) const {
    return {r.lse - r.target, {1, -0.9, 0}};
  }
};
// Tokens count by their place among all rows.
struct counts_rows {
  token_term term(const row_statistics& r, const label_place& t) const {
    const double w = 1 + 0.01 * double(t.row);
    return {w * (r.lse - r.target), {w, -w, 0}};
  }
};
// A constant for each token, whatever is scored. Row losses need no labels.
struct counts_calls {
  mutable double calls = 0;
  token_term term(const row_statistics& r, const label_place&) const {
    calls += 1e-3;
    return {r.lse - r.target + calls, {1, -1, 0}};
  }
};
// The value is a mean of another number of tokens than the gradient.
struct two_normalisers {
  token_term term(const row_statistics& r, const label_place&) const {
    return {(r.lse - r.target) / 2, {1, -1, 0}};
  }
};
// Samples count by their number in the batch.
struct counts_samples {
  token_term term(const row_statistics& r, const label_place& t) const {
    const double w = 1 + 0.01 * double(t.segment);
    return {w * (r.lse - r.target), {w, -w, 0}};
  }
};
// The difference in float, whatever the precision.
struct coarse {
  token_term term(const row_statistics& r, const label_place&) const {
    return {double(float(r.lse) - float(r.target)), {1, -1, 0}};
  }
};
// Slopes are right for tokens that are likely.
struct clips_unlikely {
  token_term term(const row_statistics& r, const label_place&) const {
    const double nll = r.lse - r.target, slope = nll > 20 ? 0.5 : 1;
    return {nll, {slope, -slope, 0}};
  }
};
// A sample's first prediction has no gradient.
struct forgets_first {
  token_term term(const row_statistics& r, const label_place& t) const {
    const double slope = t.index == 1 ? 0 : 1;
    return {r.lse - r.target, {slope, -slope, 0}};
  }
};

TEST_CASE("a wrong loss breaks the law that speaks of it") {
  const laws::setting s = laws::rows(37, 6);
  CHECK(laws::broken(laws::hold_loss(wrong_slope{}, s)) == "central differences");
  CHECK(laws::broken(laws::hold_loss(losses(cross_entropy{}, wrong_slope{}), s)) ==
        "central differences");
  CHECK(laws::broken(laws::hold_loss(counts_rows{}, s)) == "batch-independence");
  CHECK(laws::broken(laws::hold_loss(counts_calls{}, s)) == "recomputation has no side effects");
  CHECK(laws::broken(laws::hold_loss(two_normalisers{}, s)) == "central differences");
  CHECK(laws::broken(laws::hold_loss(counts_samples{}, s)) == "batch-independence");
  CHECK(laws::broken(laws::hold_loss(coarse{}, s)) == "central differences");
  CHECK(laws::broken(laws::hold_loss(clips_unlikely{}, s)) == "slopes at zeros and ties");
  CHECK(laws::broken(laws::hold_loss(forgets_first{}, s)) == "central differences");
}

}  // namespace
}  // namespace streambp
