// The head and the loss at one run of rows: forward, loss, backward.
#pragma once

#include "engine.hpp"

namespace streambp {

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::run_head_forward(row_range rows, view<scalar> x) {
  if constexpr (storage<Device, Model>::has_head) {
    const chunk_place at = place_of(rows, plan_.head_grains);
    run_forward(on_, model_.head_section, storage_.head.cell, at, model_.count(), {{}, x},
                head_result(rows.rows()), visit{purpose::forward_kept});
  } else {
    copy(on_, x, head_result(rows.rows()));
  }
}

// x: the trunk's rows. dx: where their gradient goes; may be x.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::visit_head(row_range rows, view<scalar> x, view<scalar> dx,
                                                   head_visit why) {
  switch (why) {
    case head_visit::value:
      // The sums of a coupled loss are added up in a gradient's order, once all rows are there.
      if constexpr (!loss_traits<Loss>::couples) run_loss(rows, x, dx, why);
      return;
    case head_visit::log_probabilities:
      return read_log_probabilities(rows, x);
    case head_visit::last_results:
      return read_last_results(rows, x);
    default:
      return run_loss(rows, x, dx, why);
  }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::read_log_probabilities(row_range rows, view<scalar> x) {
  if constexpr (!loss_traits<Loss>::sees_rows) {
    run_loss(rows, x, {}, head_visit::value);
    for (position i = 0; i < storage_.head.first(rows.rows(), 0); ++i)
      log_probabilities_[std::size_t(storage_.head.tokens(i, 0).row)] =
          storage_.head.statistics(i, 0).log_probability();
  }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::read_last_results(row_range rows, view<scalar> x) {
  for (const piece& p : piece_list(samples(), rows))
    if (rows.first + p.last() == samples().segment(p.segment).last) {
      const position row = rows.first + p.last() - 1;
      run_head_forward({row, row + 1}, x.middle_rows(p.last() - 1, 1));
      copy(on_, head_result(1), last_results_.middle_rows(p.segment, 1));
    }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::run_loss(row_range rows, view<scalar> x, view<scalar> dx,
                                                 head_visit why) {
  using traits = loss_traits<Loss>;
  auto& head = storage_.head;
  const position n = rows.rows();
  run_head_forward(rows, x);
  const view<scalar> result = head_result(n), dy = head.result.middle_rows(0, n);
  if (why != head_visit::gradient) look_at(result, rows, position(model_.count()));
  if (dy.data != result.data) copy(on_, result, dy);

  const chunk_place at = place_of(rows, plan_.head_grains);
  const position first_grain =
      position(std::lower_bound(plan_.head_grains.begin(), plan_.head_grains.end(), rows.first) -
               plan_.head_grains.begin());
  double* const values = storage_.grain_values.data + first_grain;
  if constexpr (!traits::couples)  // a coupled loss has one value, set when its sums were complete
    for (std::size_t g = 0; g + 1 < at.grains.size(); ++g) values[g] = 0;

  if constexpr (traits::sees_rows) {
    if (traits::collects && why != head_visit::gradient) {
      if constexpr (traits::collects) traits::collect(loss_, on_, rows.first, dy);
    } else {
      for (std::size_t g = at.grains.size() - 1; g-- > 0;) {
        const row_range own{at.grains[g], at.grains[g + 1]};
        const double value =
            traits::rows(loss_, on_, own.first, dy.middle_rows(own.first - rows.first, own.rows()));
        if (!traits::couples) values[g] = value;
      }
    }
  } else {
    const target_rows targets{head.first, head.targets, head.tokens, head.weights};
    fill_targets(loss_, samples(), *data_, rows, storage_.segment_scales, targets);
    const auto count = std::size_t(targets.count(n));
    const std::span<const std::int32_t> first{head.first.data, std::size_t(n) + 1},
        wanted{head.targets.data, count};
    const std::span<row_statistics> statistics{head.statistics.data, count};
    row_statistics_of(on_, traits::logits(loss_), dy, first, wanted, traits::wants_mean(loss_),
                      statistics);
    std::size_t grain = at.grains.size() - 1;
    for (position row = n; row-- > 0;) {
      while (at.grains[grain] > rows.first + row) --grain;
      for (position t = head.first(row + 1, 0); t-- > head.first(row, 0);) {
        const token& token = head.tokens(t, 0);
        const token_term term = traits::term(loss_, statistics[std::size_t(t)], token);
        double slope = head.weights(t, 0);
        if constexpr (traits::couples) {
          if (why != head_visit::gradient)
            storage_.segment_sums(token.segment, 0) += slope * term.value;
          slope *= storage_.segment_slopes(token.segment, 0);
        } else {
          values[grain] += slope * term.value;
        }
        head.slopes(t, 0) = {slope * term.slopes.lse, slope * term.slopes.target,
                             slope * term.slopes.mean};
      }
    }
    if (why == head_visit::gradient)
      gradient_of_rows(on_, traits::logits(loss_), dy, first, wanted, statistics,
                       std::span<const row_gradient>{head.slopes.data, count});
  }
  if (why != head_visit::gradient) return;

  if constexpr (storage<Device, Model>::has_head) {
    const view<scalar> d = run_backward(on_, model_.head_section, head.cell, at, model_.count(),
                                        {{}, x}, result, dy, visit{purpose::backward});
    copy(on_, d, dx);
  } else {
    copy(on_, dy, dx);
  }
}

// Over the stream's rows: last chunk first where sums are added up, first chunk first to read.
template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::visit_heads(const sweep& s) {
  if (none_counts_) return;
  const head_visit why = s.kind == sweep_kind::head        ? head_visit::gradient
                         : s.kind == sweep_kind::summarise ? head_visit::summarise
                                                           : reading_;
  const std::size_t n = plan_.head_chunks.size() - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = descends(s.kind) ? n - 1 - i : i;
    const row_range rows{plan_.head_chunks[c], plan_.head_chunks[c + 1]};
    const view<scalar> h = storage_.stream.middle_cols(0, model_.trunk_width()).rows_in(rows);
    if (trace_) trace_->push_back({s, rows});
    visit_head(rows, h, h, why);
  }
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::couple(bool wants_gradient) {
  using traits = loss_traits<Loss>;
  if constexpr (traits::collects) {
    storage_.grain_values(0, 0) = loss_.couple(wants_gradient);
  } else if constexpr (traits::couples) {
    const auto n = std::size_t(samples().segments());
    storage_.grain_values(0, 0) =
        traits::couple(loss_, {storage_.segment_sums.data, n}, {storage_.segment_slopes.data, n});
  }
}

}  // namespace streambp
