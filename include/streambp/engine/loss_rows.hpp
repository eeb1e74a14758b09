// From labels to coefficients: which rows predict what, what each counts, and the loss over a range
// of rows. The shift of labels by one happens here and nowhere else.
#pragma once

#include <cmath>
#include <span>

#include "../core/packed.hpp"
#include "../traits/loss_traits.hpp"
#include "batch.hpp"

namespace streambp {

// What a step asks of a loss ahead of its rows. Members of a loss may change between steps.
struct loss_facts {
  bool couples = false;            // its gradient needs sums of all tokens
  bool sees_rows = false;          // it is of whole rows and needs no labels
  bool collects = false;           // so, and needs all of them before its gradient
  bool knows_what_counts = false;  // says itself which segments do
  bool wants_mean = false;
  std::int32_t ignore_index = -100;
  over average = over::tokens;
  logit_transform logits{};

  loss_facts() = default;
  template <class Loss>
  loss_facts(const Loss& loss)
      : couples(loss_traits<Loss>::couples),
        sees_rows(loss_traits<Loss>::sees_rows),
        collects(loss_traits<Loss>::collects),
        knows_what_counts(loss_traits<Loss>::knows_what_counts),
        wants_mean(loss_traits<Loss>::wants_mean(loss)),
        ignore_index(loss_traits<Loss>::ignore_index(loss)),
        average(loss_traits<Loss>::average(loss)),
        logits(loss_traits<Loss>::logits(loss)) {}
};

// Whether the label of `row` is scored, if some row predicts it.
template <class Scalar>
bool counts(const loss_facts& loss, const batch<Scalar>& data, position row) {
  const auto i = std::size_t(row);
  return data.labels[i] != loss.ignore_index &&
         (data.weights.empty() || data.weights[i] != Scalar(0));
}

// Calls f(label's row) for every scored label of a segment, ascending.
template <class Scalar, class F>
void for_each_scored(const loss_facts& loss, const packed& samples, const batch<Scalar>& data,
                     position segment, F&& f) {
  const row_range own = samples.segment(segment);
  const position first = own.first + (samples.parent(segment) < 0);
  for (position row = first; row < own.last; ++row)
    if (counts(loss, data, row)) f(row);
}

// Σ of the weights of scored labels: what a mean over tokens divides by. Add it up over the batches
// of an accumulation window and give the sum as batch::normaliser. A loss of whole rows counts each
// row once.
template <class Scalar>
double normaliser_of(const loss_facts& loss, const packed& samples, const batch<Scalar>& data) {
  if (loss.sees_rows) return double(samples.tokens());
  const over average = loss.average;
  if (average == over::nothing) return 1;
  double total = 0;
  for (position s = 0; s < samples.segments(); ++s) {
    double own = 0;
    for_each_scored(loss, samples, data, s, [&](position row) {
      own += data.weights.empty() ? 1.0 : double(data.weights[std::size_t(row)]);
    });
    total += average == over::tokens ? own : double(own > 0);
  }
  return total;
}

// The part of its accumulation window that a step is, by what it counts: the factor of its side
// losses. 1 where no normaliser is given, 0 where nothing counts. Steps of a sum, and coupled ones,
// count 1 each, whatever they score.
template <class Loss, class Scalar>
double share_of_window(const Loss& loss, const packed& samples, const batch<Scalar>& data) {
  if constexpr (requires { loss_traits<Loss>::share_of_window(loss); })
    return loss_traits<Loss>::share_of_window(loss);
  else
    return share_of_window(loss_facts(loss), samples, data);
}
template <class Scalar>
double share_of_window(const loss_facts& loss, const packed& samples, const batch<Scalar>& data) {
  bool any = loss.sees_rows && samples.tokens() > 0;
  for (position s = 0; s < samples.segments() && !any && !loss.sees_rows; ++s)
    for_each_scored(loss, samples, data, s, [&](position) { any = true; });
  if (!any || data.normaliser == 0) return double(any);
  return normaliser_of(loss, samples, data) / data.normaliser;
}

// What a unit of weight counts in each segment; 0 where nothing does, in the segment or in one that
// goes on from it. A parent of which only its children count has the scale of one of them, so that
// it is not 0: nothing is multiplied by it.
template <class Scalar>
void fill_segment_scales(const loss_facts& loss, const packed& samples, const batch<Scalar>& data,
                         view<double> scales) {
  const double n = data.normaliser != 0 ? data.normaliser : normaliser_of(loss, samples, data);
  if (!std::isfinite(n))
    throw data_error(
        sentence("batch: the weights of the labels that count add up to ", n, "; scale them down"));
  const bool by_sample = loss.average == over::samples;
  for (position s = 0; s < samples.segments(); ++s) {
    double own = 0;
    for_each_scored(loss, samples, data, s, [&](position row) {
      own += data.weights.empty() ? 1.0 : double(data.weights[std::size_t(row)]);
    });
    if (!by_sample && own > 0) own = 1;
    scales(s, 0) = n > 0 && own > 0 ? 1 / (n * own) : 0;
    if (!std::isfinite(scales(s, 0)) || (n > 0 && own > 0 && scales(s, 0) == 0))
      throw data_error(sentence("batch: a label of sample ", s, " counts 1 / (", n, " * ", own,
                                "), which no number holds; the normaliser or the weights are "
                                "too small or too large"));
    const position parent = samples.parent(s);
    if (parent >= 0 && scales(parent, 0) == 0) scales(parent, 0) = scales(s, 0);
  }
}

// Throws data_error.
template <class Scalar>
void check_normaliser(const batch<Scalar>& data) {
  if (data.normaliser != 0 && !(std::isfinite(data.normaliser) && data.normaliser > 0))
    throw data_error(sentence("batch: a normaliser of ", data.normaliser,
                              "; it is finite and positive, or 0 for what the batch counts"));
}

// Throws data_error at the first label or weight that cannot be used.
template <class Scalar>
void check_labels(const loss_facts& loss, const packed& samples, const batch<Scalar>& data,
                  position vocabulary) {
  const position tokens = samples.tokens();
  if (position(data.labels.size()) != tokens)
    throw shape_error(sentence("batch: ", data.labels.size(), " labels for ", tokens,
                               " tokens; labels are the tokens, not shifted, one at each"));
  if (!data.weights.empty() && position(data.weights.size()) != tokens)
    throw shape_error(sentence("batch: ", data.weights.size(), " weights for ", tokens, " labels"));
  check_normaliser(data);
  const std::int32_t ignore = loss.ignore_index;
  for (position s = 0; s < samples.segments(); ++s)
    for (position row = samples.segment(s).first; row < samples.segment(s).last; ++row) {
      const std::int32_t label = data.labels[std::size_t(row)];
      if (label != ignore && (label < 0 || label >= vocabulary))
        throw data_error(sentence("batch: label ", label, " at token ", row, " (sample ", s,
                                  ", position ", row - samples.segment(s).first,
                                  ") is outside the vocabulary of ", vocabulary,
                                  "; labels that do not count are ", ignore));
      if (!data.weights.empty() && !(std::isfinite(double(data.weights[std::size_t(row)])) &&
                                     data.weights[std::size_t(row)] >= Scalar(0)))
        throw data_error(sentence("batch: weight ", double(data.weights[std::size_t(row)]),
                                  " at token ", row, "; weights are finite and not negative"));
    }
}

// Whether labels[t] is tokens[t + 1] nearly wherever the two tokens differ and the label counts: in
// 95 of 100 places, and in 16 at least.
template <class Scalar>
bool labels_look_shifted(const loss_facts& loss, const packed& samples, const batch<Scalar>& data) {
  if (data.tokens.empty()) return false;
  position places = 0, shifted = 0;
  for (position s = 0; s < samples.segments(); ++s)
    for (position t = samples.segment(s).first; t + 1 < samples.segment(s).last; ++t) {
      const auto i = std::size_t(t);
      if (data.tokens[i] == data.tokens[i + 1] || !counts(loss, data, t)) continue;
      ++places;
      shifted += data.labels[i] == data.tokens[i + 1];
    }
  return places >= 16 && 100 * shifted >= 95 * places;
}

// The targets of a run of rows, row by row.
struct target_rows {
  view<std::int32_t> first;  // by row, and one more: its first target
  view<std::int32_t> targets;
  view<label_place> places;
  view<double> weights;

  position count(position rows) const { return first(rows, 0); }
};

// Row t - 1 predicts label t of its own segment; the last row of a parent predicts the first label
// of each of its children.
template <class Scalar>
void fill_targets(const loss_facts& loss, const packed& samples, const batch<Scalar>& data,
                  row_range range, view<double> scales, const target_rows& to) {
  std::int32_t n = 0;
  const auto add = [&](position label, position segment) {
    if (!counts(loss, data, label)) return;
    const auto i = std::size_t(label);
    to.targets(n, 0) = data.labels[i];
    to.places(n, 0) = {label, segment, label - samples.segment(segment).first};
    to.weights(n, 0) = scales(segment, 0) * (data.weights.empty() ? 1.0 : double(data.weights[i]));
    ++n;
  };
  for (const piece& p : piece_list(samples, range)) {
    const position end = samples.segment(p.segment).last;
    for (position i = p.row; i < p.last(); ++i) {
      to.first(i, 0) = n;
      const position label = range.first + i + 1;
      if (label < end) {
        add(label, p.segment);
      } else if (samples.parent_number(p.segment) >= 0) {
        for (position child = p.segment + 1; child < samples.segments(); ++child)
          if (samples.parent(child) == p.segment && samples.segment(child).rows() > 0)
            add(samples.segment(child).first, child);
      }
    }
  }
  to.first(range.rows(), 0) = n;
}

// A head chunk's rows as a loss of tokens goes over them: by target, but where said otherwise.
struct term_rows {
  row_range rows;                    // on the packed axis
  std::span<const position> grains;  // edges of the head's, from rows.first to rows.last
  view<const std::int32_t> first;    // by row, and one more: its first target
  view<const label_place> places;
  view<const double> weights;
  view<const row_statistics> statistics;
  view<row_gradient> slopes;          // assigned
  double* values = nullptr;           // by grain: added to; of a coupled loss
  view<double> segment_sums;          // these are, before the gradient is asked for,
  view<const double> segment_slopes;  // and these are read
};

// Last target first, so that sums do not hang on chunks. term(statistics, place) is the loss's.
template <bool Couples, class Term>
void add_terms(const term_rows& r, bool gradient, const Term& term) {
  std::size_t grain = r.grains.size() - 1;
  for (position row = r.rows.rows(); row-- > 0;) {
    while (r.grains[grain] > r.rows.first + row) --grain;
    for (position t = r.first(row + 1, 0); t-- > r.first(row, 0);) {
      const label_place& place = r.places(t, 0);
      const token_term of = term(r.statistics(t, 0), place);
      double slope = r.weights(t, 0);
      if constexpr (Couples) {
        if (!gradient) r.segment_sums(place.segment, 0) += slope * of.value;
        slope *= r.segment_slopes(place.segment, 0);
      } else {
        r.values[grain] += slope * of.value;
      }
      r.slopes(t, 0) = {slope * of.slopes.lse, slope * of.slopes.target, slope * of.slopes.mean};
    }
  }
}

}  // namespace streambp
