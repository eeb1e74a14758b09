// Cross entropy of the next token: -log softmax(z)[target], with the usual additions.
#pragma once

#include "../traits/loss_traits.hpp"

namespace streambp {

// l = (1 - s)(lse - z_y) + s (lse - mean z) + c lse², s = label_smoothing, c = z_loss; z are the
// logits after `logits`. Row t - 1 predicts label t; a target counts when its own label is not
// ignore_index and its weight is not 0.
struct cross_entropy {
  std::int32_t ignore_index = -100;
  double label_smoothing = 0;
  double z_loss = 0;
  logit_transform logits{};
  over average = over::tokens;

  // Throws data_error.
  void check(position) const {
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
      throw data_error(
          sentence("cross_entropy: label_smoothing is ", label_smoothing, "; it is 0 to 1"));
    if (!(z_loss >= 0 && std::isfinite(z_loss)))
      throw data_error(
          sentence("cross_entropy: z_loss is ", z_loss, "; it is finite and not negative"));
  }

  bool wants_mean() const { return label_smoothing != 0; }

  token_term term(const row_statistics& r, const label_place&) const {
    const double s = label_smoothing, lse = r.base + r.lse;
    return {(1 - s) * (r.lse - r.target) + s * (r.lse - r.mean) + z_loss * lse * lse,
            {1 + 2 * z_loss * lse, -(1 - s), -s}};
  }
};

}  // namespace streambp
