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
  const loss_facts facts = loss_->facts();
  if (model().tallies()) return true;  // a side loss counts every row
  if (facts.knows_what_counts) return loss_->counts(segment);
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

// Which samples count, by the scales of their segments. A side loss counts every row.
template <class Device>
void step_runner<Device>::find_what_counts(bool labels) {
  none_counts_ = false;
  all_count_ = true;
  if (!facts_.sees_rows) {
    if (!labels) return;
    fill_segment_scales(facts_, samples(), *data_, storage_.segment_scales);
  } else if (facts_.knows_what_counts) {
    for (position s = 0; s < samples().segments(); ++s)
      storage_.segment_scales(s, 0) = loss_->counts(s);
  } else {
    return;
  }
  none_counts_ = true;
  for (position s = 0; s < samples().segments(); ++s) {
    const bool counts = storage_.segment_scales(s, 0) != 0;
    none_counts_ = none_counts_ && !counts;
    all_count_ = all_count_ && counts;
  }
  all_count_ = all_count_ || model().tallies();
  if (all_count_ || none_counts_) return;
  stand_in_ = detail::stand_in_of(samples(), storage_.segment_scales);
  if (model().crosses())
    context_stand_in_ = detail::stand_in_of(plan_.shape.context, storage_.segment_scales);
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
    counts = counts && storage_.segment_scales(p.segment, 0) != 0;
  if (counts) return own;
  const view<scalar> x(storage_.stand_ins.data, own.rows, own.cols);
  detail::for_each_run(*at.samples, at.rows, storage_.segment_scales, stand_in,
                       [&](row_range to, row_range from) {
                         if (from.rows() > 0)
                           copy(on_, all.rows_in(from), x.rows_in(to));
                         else
                           zero(on_, x.rows_in(to));
                       });
  return x;
}

}  // namespace streambp
