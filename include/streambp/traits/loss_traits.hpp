// The customization point for losses. The primary template adopts a loss's members.
//
// A token loss is a function of the target's row of logits:
//   term(statistics, place)      -> token_term{value, slopes}; unweighted
// A coupled loss is a function of one sum per segment:
//   summary(statistics, place)   -> token_term: what the token adds to its segment's sum
//   couple(sums, slopes)         -> value; assigns d value / d sum of every segment
// A row loss sees whole rows and needs no labels:
//   rows(on, first_row, y)       -> value; turns y into dvalue/dy in place, row by row
// and one whose gradient needs all rows first, such as the decoder above an encoder, has besides
//   collect(on, first_row, y)    every row, before the first gradient is asked for
//   finish(wants_gradient)       -> value; rows() then returns nothing of value
// It may know what part of its accumulation window a step is, which side losses are scaled by, and
// that rows of a sample have no part in the value:
//   share_of_window()            -> 0 to 1; else the step's rows over a given normaliser
//   counts(segment)              -> whether its rows are looked at; else all are
// It is refused on a device whose memory the host does not reach, unless it says
//   static constexpr bool host_only = false: primitives alone touch rows
// Members of token and coupled losses, all optional: logits (logit_transform), wants_mean,
// ignore_index, average (over::tokens, samples or nothing), check(segments), which may throw.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>

#include "../core/error.hpp"
#include "../core/position.hpp"
#include "../primitives/row_terms.hpp"

namespace streambp {

// A label's place: its row on the packed axis, its segment, its position there.
struct label_place {
  position row = 0;
  position segment = 0;
  position index = 0;
};

struct token_term {
  double value = 0;
  row_gradient slopes{};
};

// What a token loss is a mean over. over::samples: the mean over samples of each one's mean.
enum class over : unsigned char { tokens, samples, nothing };

template <class L>
struct loss_traits {
  using adopts = L;  // whose members these are

  static constexpr bool collects = requires(const L& l) { l.finish(true); };
  static constexpr bool couples = collects || requires(const L& l, std::span<double> s) {
    l.couple(s, s);
  };
  static constexpr bool sees_rows =
      collects || (!couples && !requires(const L& l) { l.term(row_statistics{}, label_place{}); });

  // Its own loops touch rows.
  static constexpr bool host_only = [] {
    if constexpr (requires { L::host_only; })
      return bool(L::host_only);
    else
      return sees_rows;
  }();

  static token_term term(const L& loss, const row_statistics& s, const label_place& t) {
    if constexpr (couples)
      return loss.summary(s, t);
    else
      return loss.term(s, t);
  }
  static double couple(const L& loss, std::span<const double> sums, std::span<double> slopes) {
    return loss.couple(sums, slopes);
  }
  static double finish(const L& loss, bool wants_gradient) requires collects {
    return loss.finish(wants_gradient);
  }
  template <class Device, class Rows>
  static void collect(const L& loss, Device& on, position first_row, Rows y) {
    loss.collect(on, first_row, y);
  }
  template <class Device, class Rows>
  static double rows(const L& loss, Device& on, position first_row, Rows y) {
    return loss.rows(on, first_row, y);
  }
  static constexpr bool knows_share = requires(const L& l) { l.share_of_window(); };
  static double share_of_window(const L& loss) requires knows_share {
    return loss.share_of_window();
  }
  static constexpr bool knows_what_counts = requires(const L& l) {
    { l.counts(position(0)) } -> std::convertible_to<bool>;
  };
  static bool counts(const L& loss, position segment) requires knows_what_counts {
    return loss.counts(segment);
  }
  static logit_transform logits(const L& loss) {
    if constexpr (requires { loss.logits; })
      return loss.logits;
    else
      return {};
  }
  static bool wants_mean(const L& loss) {
    if constexpr (requires { loss.wants_mean(); })
      return loss.wants_mean();
    else
      return false;
  }
  static std::int32_t ignore_index(const L& loss) {
    if constexpr (requires { loss.ignore_index; })
      return loss.ignore_index;
    else
      return -100;
  }
  static over average(const L& loss) {
    if constexpr (couples)
      return over::nothing;
    else if constexpr (requires { loss.average; })
      return loss.average;
    else
      return over::tokens;
  }
  // Throws what the loss's own check throws, and data_error for a transform of no use.
  static void check(const L& loss, position segments) {
    const logit_transform z = logits(loss);
    if (!std::isfinite(z.scale) || !(std::isfinite(z.softcap) && z.softcap >= 0))
      throw data_error(sentence("loss: logits of scale ", z.scale, " and softcap ", z.softcap,
                                "; both are finite, the softcap is not negative"));
    if constexpr (requires { loss.check(segments); }) loss.check(segments);
  }
};

}  // namespace streambp
