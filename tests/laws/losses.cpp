#include <streambp/losses/cross_entropy.hpp>
#include <streambp/losses/preference.hpp>

#include "broken.hpp"

namespace streambp {
namespace {

TEST_CASE("cross entropy keeps the laws with every option") {
  const cross_entropy cases[] = {
      {},
      {.label_smoothing = 0.1},
      {.z_loss = 1e-2},
      {.logits = {0.5, 5}},
      {.average = over::samples},
      {.average = over::nothing},
      {.label_smoothing = 0.1, .z_loss = 1e-2, .logits = {0.5, 5}, .average = over::samples}};
  for (const cross_entropy& loss : cases) {
    CAPTURE(&loss - cases);
    const laws::report r = laws::hold_loss(loss, laws::rows(37, 6));
    CHECK(r);
    CHECK(r.plans() > 30);
    laws::setting weighted = laws::rows(53, 6);
    weighted.weights = true;
    CHECK(laws::hold_loss(loss, weighted));
  }
}

// An ignored label inside the vocabulary ignores targets, never classes.
TEST_CASE("a label that is ignored may be a class") {
  CHECK(laws::hold_loss(cross_entropy{.ignore_index = 3}, laws::rows(37, 6)));
}

TEST_CASE("direct preference keeps the laws, with pairs of one token and of none") {
  const direct_preference loss{{{2, 4}, {1, 4}, {4, 0}}, {0.5, -1, -30, 0, -40, 0}, 0.3};
  const laws::report r = laws::hold_loss(loss, laws::rows(37, 6));
  CHECK(r);
  CHECK(r.unjudged() == std::vector{laws::law::batch_independence});
}

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
