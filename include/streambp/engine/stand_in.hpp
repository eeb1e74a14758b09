// Samples of which nothing counts: rows of a sample that counts stand in for theirs, so that what
// they hold reaches nothing. 0 times a number that is not finite is none.
#pragma once

#include "step_runner.hpp"

namespace streambp {

namespace detail {

// The longest of the axis's segments that count, by their scales; no rows: none has any.
inline row_range stand_in_of(const packed& axis, view<const double> scales) {
  row_range longest;
  for (position s = 0; s < axis.segments(); ++s)
    if (scales(s, 0) != 0 && axis.segment(s).rows() > longest.rows()) longest = axis.segment(s);
  return longest;
}

// Calls f(to, from) for runs of rows that make up the chunk `rows` of the axis: `to` counted from
// the chunk's start, `from` on the axis. In segments that count nothing `from` goes through
// `stand_in`, over and over; without one it is empty.
template <class F>
void for_each_run(const packed& axis, row_range rows, view<const double> scales, row_range stand_in,
                  F&& f) {
  for (const piece& p : piece_list(axis, rows)) {
    if (scales(p.segment, 0) != 0) {
      f(row_range{p.row, p.last()}, row_range{rows.first + p.row, rows.first + p.last()});
      continue;
    }
    if (stand_in.rows() == 0) f(row_range{p.row, p.last()}, row_range{});
    for (position i = 0, n = 0; i < p.rows && stand_in.rows() > 0; i += n) {
      const position at = stand_in.first + (p.start + i) % stand_in.rows();
      n = std::min(stand_in.last - at, p.rows - i);
      f(row_range{p.row + i, p.row + i + n}, row_range{at, at + n});
    }
  }
}

}  // namespace detail

template <class Device>
bool step_runner<Device>::counts(const batch_type& data, position segment) const {
  if (model().tallies()) return true;  // a side loss counts every row
  if (!data.heads.empty() && position(data.heads.size()) != head_count()) return true;
  for (position h = 0; h < head_count(); ++h)
    if (counts(heads_[std::size_t(h)], data.of_head(h), segment)) return true;
  return false;
}

template <class Device>
bool step_runner<Device>::counts(const output_head& head, const batch_type& data,
                                 position segment) const {
  const loss_facts facts = head.loss->facts();
  if (facts.knows_what_counts) return head.loss->counts(segment);
  if (facts.sees_rows) return true;
  const auto tokens = std::size_t(samples().tokens());
  if (data.labels.size() != tokens || (!data.weights.empty() && data.weights.size() != tokens))
    return true;
  bool any = false;
  const auto look = [&](position s) {
    for_each_scored(facts, samples(), data, s, [&](position) { any = true; });
  };
  look(segment);
  for (position s = segment + 1; samples().parent_number(segment) >= 0 && s < samples().segments();
       ++s)
    if (samples().parent(s) == segment) look(s);
  return any;
}

// Every row, whatever the batch says.
template <class Device>
bool step_runner<Device>::some_head_counts_all() const {
  for (position h = reading_heads_.first; h < reading_heads_.last; ++h) {
    const loss_facts& facts = heads_[std::size_t(h)].facts;
    if (facts.sees_rows && !facts.knows_what_counts) return true;
  }
  return false;
}

// What a token of each segment weighs in a head's loss, or whether its rows count.
template <class Device>
void step_runner<Device>::fill_scales(position h) {
  const output_head& own = heads_[std::size_t(h)];
  const view<double>& scales = sums(h).segment_scales;
  if (own.facts.sees_rows) {
    if (!own.facts.knows_what_counts) return;
    for (position s = 0; s < samples().segments(); ++s) scales(s, 0) = own.loss->counts(s);
    return;
  }
  fill_segment_scales(own.facts, samples(), own.data, scales);
  if (own.facts.couples) return;  // sums are weighed once they are complete
  for (position s = 0; s < samples().segments(); ++s) scales(s, 0) *= own.factor;
}

// Which samples count, in some head that the step looks at, by the scales of their segments. A side
// loss counts every row.
template <class Device>
void step_runner<Device>::find_what_counts(bool labels) {
  none_counts_ = false;
  all_count_ = true;
  const row_range heads = reading_heads_;
  bool all = some_head_counts_all();
  for (position h = heads.first; h < heads.last; ++h)
    if (labels || heads_[std::size_t(h)].facts.sees_rows)
      fill_scales(h);
    else
      all = true;
  if (all) return;
  if (head_count() > 1)
    for (position s = 0; s < samples().segments(); ++s) {
      ledger_.segment_counts(s, 0) = 0;
      for (position h = heads.first; h < heads.last; ++h)
        if (sums(h).segment_scales(s, 0) != 0) ledger_.segment_counts(s, 0) = 1;
    }
  none_counts_ = true;
  for (position s = 0; s < samples().segments(); ++s) {
    const bool counts = ledger_.segment_counts(s, 0) != 0;
    none_counts_ = none_counts_ && !counts;
    all_count_ = all_count_ && counts;
  }
  all_count_ = all_count_ || model().tallies();
  if (all_count_ || none_counts_) return;
  stand_in_ = detail::stand_in_of(samples(), ledger_.segment_counts);
  if (model().crosses())
    context_stand_in_ = detail::stand_in_of(plan_.shape.context, ledger_.segment_counts);
}

// A chunk of the caller's rows, or of what stands in for them.
template <class Device>
view<const typename Device::scalar> step_runner<Device>::given_rows(view<const scalar> all,
                                                                    const chunk_place& at,
                                                                    row_range stand_in) {
  const view<const scalar> own = all.rows_in(at.rows);
  if (all_count_) return own;
  bool counts = true;
  for (const piece& p : piece_list(*at.samples, at.rows))
    counts = counts && ledger_.segment_counts(p.segment, 0) != 0;
  if (counts) return own;
  const view<scalar> x(storage_.stand_ins.data, own.rows, own.cols);
  detail::for_each_run(*at.samples, at.rows, ledger_.segment_counts, stand_in,
                       [&](row_range to, row_range from) {
                         if (from.rows() > 0)
                           copy(on_, all.rows_in(from), x.rows_in(to));
                         else
                           zero(on_, x.rows_in(to));
                       });
  return x;
}

}  // namespace streambp
