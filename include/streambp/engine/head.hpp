// The head and the loss at one run of rows: forward, loss, backward.
#pragma once

#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::run_head_forward(row_range rows, view<scalar> x) {
  if (!model().has_head()) return copy(on_, x, head_result(rows.rows()));
  sections_->forward(on_, position(model().count()), storage_.head.cell,
                     place_of(rows, plan_.head_grains, head_listed_), {{}, x},
                     head_result(rows.rows()), visit{purpose::forward_kept});
}

// x: the trunk's rows. dx: where their gradient goes; may be x.
template <class Device>
void step_runner<Device>::visit_head(row_range rows, view<scalar> x, view<scalar> dx,
                                     head_visit why) {
  switch (why) {
    case head_visit::value:
      // The sums of a coupled loss are added up in a gradient's order, once all rows are there.
      if (!facts_.couples) run_loss(rows, x, dx, why);
      return;
    case head_visit::log_probabilities:
      return read_log_probabilities(rows, x);
    case head_visit::last_results:
      return read_last_results(rows, x);
    default:
      return run_loss(rows, x, dx, why);
  }
}

template <class Device>
void step_runner<Device>::read_log_probabilities(row_range rows, view<scalar> x) {
  run_loss(rows, x, {}, head_visit::value);
  for (position i = 0; i < storage_.head.first(rows.rows(), 0); ++i)
    log_probabilities_[std::size_t(storage_.head.places(i, 0).row)] =
        storage_.head.statistics(i, 0).log_probability();
}

template <class Device>
void step_runner<Device>::read_last_results(row_range rows, view<scalar> x) {
  for (const piece& p : piece_list(samples(), rows))
    if (rows.first + p.last() == samples().segment(p.segment).last) {
      const position row = rows.first + p.last() - 1;
      run_head_forward({row, row + 1}, x.middle_rows(p.last() - 1, 1));
      copy(on_, head_result(1), last_results_.middle_rows(p.segment, 1));
    }
}

template <class Device>
void step_runner<Device>::run_loss(row_range rows, view<scalar> x, view<scalar> dx,
                                   head_visit why) {
  auto& head = storage_.head;
  const position n = rows.rows();
  const bool gradient = why == head_visit::gradient;
  run_head_forward(rows, x);
  const view<scalar> result = head_result(n), dy = head.result.middle_rows(0, n);
  if (!gradient) look_at(result, rows, position(model().count()));
  if (dy.data != result.data) copy(on_, result, dy);

  const chunk_place at = place_of(rows, plan_.head_grains, head_listed_);
  double* const values = storage_.grain_values.data + plan_.head_grains.lower_bound(rows.first);
  if (!facts_.couples)  // a coupled loss has one value, set when its sums were complete
    for (std::size_t g = 0; g + 1 < at.grains.size(); ++g) values[g] = 0;

  if (!facts_.sees_rows)
    run_terms(at, dy, values, gradient);
  else if (facts_.collects && !gradient)
    loss_->collect(on_, rows.first, dy);
  else
    for (std::size_t g = at.grains.size() - 1; g-- > 0;) {
      const row_range own{at.grains[g], at.grains[g + 1]};
      const double value =
          loss_->rows(on_, own.first, dy.middle_rows(own.first - rows.first, own.rows()));
      if (!facts_.couples) values[g] = value;
    }
  if (!gradient) return;

  if (model().has_head()) {
    const view<scalar> d = sections_->backward(on_, position(model().count()), head.cell, at,
                                               {{}, x}, result, dy, visit{purpose::backward});
    copy(on_, d, dx);
  } else {
    copy(on_, dy, dx);
  }
}

// A loss of tokens over raw logits y, which become their gradient where it is wanted.
template <class Device>
void step_runner<Device>::run_terms(const chunk_place& at, view<scalar> y, double* values,
                                    bool gradient) {
  auto& head = storage_.head;
  const target_rows targets{head.first, head.targets, head.places, head.weights};
  fill_targets(facts_, samples(), *data_, at.rows, storage_.segment_scales, targets);
  const auto count = std::size_t(targets.count(y.rows));
  const std::span<const std::int32_t> first{head.first.data, std::size_t(y.rows) + 1},
      wanted{head.targets.data, count};
  const std::span<row_statistics> statistics{head.statistics.data, count};
  row_statistics_of(on_, facts_.logits, y, first, wanted, facts_.wants_mean, statistics);
  loss_->terms({at.rows, at.grains, head.first, head.places, head.weights, head.statistics,
                head.slopes, values, storage_.segment_sums, storage_.segment_slopes},
               gradient);
  if (gradient)
    gradient_of_rows(on_, facts_.logits, y, first, wanted, statistics,
                     std::span<const row_gradient>{head.slopes.data, count});
}

// Over the stream's rows: last chunk first where sums are added up, first chunk first to read.
template <class Device>
void step_runner<Device>::visit_heads(const sweep& s) {
  if (none_counts_) return;
  const head_visit why = s.kind == sweep_kind::head        ? head_visit::gradient
                         : s.kind == sweep_kind::summarise ? head_visit::summarise
                                                           : reading_;
  const position n = plan_.head_chunks.parts();
  for (position i = 0; i < n; ++i) {
    const row_range rows = plan_.head_chunks.part(descends(s.kind) ? n - 1 - i : i);
    const view<scalar> h = storage_.stream.middle_cols(0, model().trunk_width()).rows_in(rows);
    if (trace_) trace_->push_back({s, rows});
    visit_head(rows, h, h, why);
  }
}

template <class Device>
void step_runner<Device>::couple(bool wants_gradient) {
  const auto n = std::size_t(samples().segments());
  if (facts_.collects)
    storage_.grain_values(0, 0) = loss_->finish(wants_gradient);
  else if (facts_.couples)
    storage_.grain_values(0, 0) =
        loss_->couple({storage_.segment_sums.data, n}, {storage_.segment_slopes.data, n});
}

}  // namespace streambp
