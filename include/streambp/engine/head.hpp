// Output heads and their losses at one run of rows: forward, loss, backward.
#pragma once

#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::run_head_forward(position h, row_range rows, view<scalar> x) {
  if (model().heads[std::size_t(h)].empty()) return copy(on_, x, head_result(h, rows.rows()));
  sections_->forward(on_, model().section_of_head(h), stored(h).cell,
                     place_of(rows, plan_.head_grains, head_listed_), {{}, x},
                     head_result(h, rows.rows()), visit{purpose::forward_kept});
}

// The last head first. x: the trunk's rows, which stay as they are until all heads have run. dx:
// where their gradient goes; may be x.
template <class Device>
void step_runner<Device>::visit_heads(row_range rows, view<scalar> x, view<scalar> dx,
                                      head_visit why) {
  const bool apart = why == head_visit::gradient && head_count() > 1 && dx.data == x.data;
  const view<scalar> d = apart ? storage_.trunk_gradient.middle_rows(0, rows.rows()) : dx;
  for (position h = reading_heads_.last; h-- > reading_heads_.first;)
    visit_head(h, rows, x, d, why);
  if (apart) copy(on_, d, dx);
}

template <class Device>
void step_runner<Device>::visit_head(position h, row_range rows, view<scalar> x, view<scalar> dx,
                                     head_visit why) {
  const bool couples = heads_[std::size_t(h)].facts.couples;
  switch (why) {
    case head_visit::value:
      // The sums of a coupled loss are added up in a gradient's order, once all rows are there.
      if (!couples) run_loss(h, rows, x, dx, why);
      return;
    case head_visit::summarise:
      if (couples) run_loss(h, rows, x, dx, why);
      return;
    case head_visit::log_probabilities:
      return read_log_probabilities(h, rows, x);
    case head_visit::last_results:
      return read_last_results(h, rows, x);
    case head_visit::gradient:
      return run_loss(h, rows, x, dx, why);
  }
}

template <class Device>
void step_runner<Device>::read_log_probabilities(position h, row_range rows, view<scalar> x) {
  run_loss(h, rows, x, {}, head_visit::value);
  const head_ledger& head = sums(h);
  for (position i = 0; i < head.first(rows.rows(), 0); ++i)
    log_probabilities_[std::size_t(head.places(i, 0).row)] =
        head.statistics(i, 0).log_probability();
}

template <class Device>
void step_runner<Device>::read_last_results(position h, row_range rows, view<scalar> x) {
  for (const piece& p : piece_list(samples(), rows))
    if (rows.first + p.last() == samples().segment(p.segment).last) {
      const position row = rows.first + p.last() - 1;
      run_head_forward(h, {row, row + 1}, x.middle_rows(p.last() - 1, 1));
      copy(on_, head_result(h, 1), last_results_.middle_rows(p.segment, 1));
    }
}

template <class Device>
void step_runner<Device>::run_loss(position h, row_range rows, view<scalar> x, view<scalar> dx,
                                   head_visit why) {
  auto& head = stored(h);
  const output_head& own = heads_[std::size_t(h)];
  const position n = rows.rows();
  const bool gradient = why == head_visit::gradient;
  run_head_forward(h, rows, x);
  const view<scalar> result = head_result(h, n), dy = head.result.middle_rows(0, n);
  if (!gradient) look_at(result, rows, model().section_of_head(h));
  if (dy.data != result.data) copy(on_, result, dy);

  const chunk_place at = place_of(rows, plan_.head_grains, head_listed_);
  double* const values = sums(h).grain_values.data + plan_.head_grains.lower_bound(rows.first);
  if (!own.facts.couples)  // a coupled loss has one value, set when its sums were complete
    for (std::size_t g = 0; g + 1 < at.grains.size(); ++g) values[g] = 0;

  if (!own.facts.sees_rows)
    run_terms(h, at, dy, values, gradient);
  else if (own.facts.collects && !gradient)
    own.loss->collect(on_, rows.first, dy);
  else
    for (std::size_t g = at.grains.size() - 1; g-- > 0;) {
      const row_range of{at.grains[g], at.grains[g + 1]};
      const double value =
          own.loss->rows(on_, of.first, dy.middle_rows(of.first - rows.first, of.rows()));
      if (!own.facts.couples) values[g] = own.factor * value;
    }
  if (!gradient) return;
  if (own.facts.sees_rows && own.factor != 1) scale(on_, own.factor, dy);

  if (model().heads[std::size_t(h)].empty()) return give(h, dy, dx);
  give(h,
       sections_->backward(on_, model().section_of_head(h), head.cell, at, {{}, x}, result, dy,
                           visit{purpose::backward}),
       dx);
}

// A head's gradient of the trunk's rows: the first head to run assigns it, later ones add.
template <class Device>
void step_runner<Device>::give(position h, view<const scalar> d, view<scalar> dx) {
  if (h + 1 == head_count())
    copy(on_, d, dx);
  else
    add(on_, d, dx);
}

// A loss of tokens over raw logits y, which become their gradient where it is wanted.
template <class Device>
void step_runner<Device>::run_terms(position h, const chunk_place& at, view<scalar> y,
                                    double* values, bool gradient) {
  head_ledger& head = sums(h);
  const output_head& own = heads_[std::size_t(h)];
  const target_rows targets{head.first, head.targets, head.places, head.weights};
  fill_targets(own.facts, samples(), own.data, at.rows, head.segment_scales, targets);
  const auto count = std::size_t(targets.count(y.rows));
  const std::span<const std::int32_t> first{head.first.data, std::size_t(y.rows) + 1},
      wanted{head.targets.data, count};
  const std::span<row_statistics> statistics{head.statistics.data, count};
  const auto seen = [&](std::size_t target) -> row_statistics& {
    return head.seen(head.places(position(target), 0).row, 0);
  };
  if (own.facts.couples && gradient) {  // the sweep that summed up has seen these rows
    for (std::size_t t = 0; t < count; ++t) statistics[t] = seen(t);
  } else {
    row_statistics_of(on_, own.facts.logits, y, first, wanted, own.facts.wants_mean, statistics);
    for (std::size_t t = 0; t < count && own.facts.couples; ++t) seen(t) = statistics[t];
  }
  own.loss->terms({at.rows, at.grains, head.first, head.places, head.weights, head.statistics,
                   head.slopes, values, head.segment_sums, head.segment_slopes},
                  gradient);
  if (gradient)
    gradient_of_rows(on_, own.facts.logits, y, first, wanted, statistics,
                     std::span<const row_gradient>{head.slopes.data, count});
}

// Over the stream's rows: last chunk first where sums are added up, first chunk first to read.
template <class Device>
void step_runner<Device>::sweep_heads(const sweep& s) {
  if (none_counts_) return;
  const head_visit why = s.kind == sweep_kind::head        ? head_visit::gradient
                         : s.kind == sweep_kind::summarise ? head_visit::summarise
                                                           : reading_;
  const position n = plan_.head_chunks.parts();
  for (position i = 0; i < n; ++i) {
    const row_range rows = plan_.head_chunks.part(descends(s.kind) ? n - 1 - i : i);
    const view<scalar> x = storage_.stream.middle_cols(0, model().trunk_width()).rows_in(rows);
    if (trace_) trace_->push_back({s, rows});
    visit_heads(rows, x, x, why);
  }
}

template <class Device>
void step_runner<Device>::couple(bool wants_gradient) {
  const auto n = std::size_t(samples().segments());
  for (position h = head_count(); h-- > 0;) {
    head_ledger& head = sums(h);
    const output_head& own = heads_[std::size_t(h)];
    if (!own.facts.couples) continue;
    if (own.facts.collects) {
      head.grain_values(0, 0) = own.factor * own.loss->finish(wants_gradient);
      continue;
    }
    const std::span<double> slopes{head.segment_slopes.data, n};
    head.grain_values(0, 0) = own.factor * own.loss->couple({head.segment_sums.data, n}, slopes);
    for (double& slope : slopes) slope *= own.factor;
  }
}

}  // namespace streambp
