// What an engine and its steps refuse at the door, before any work: values, places, remedies.
#pragma once

#include <array>

#include "../core/overlap.hpp"
#include "../primitives/look.hpp"
#include "../schedule/seal.hpp"
#include "step_runner.hpp"

namespace streambp {

namespace detail {

// An array of the caller's that a step reads, or adds to.
struct named_range {
  const char* name;
  byte_range bytes;
  bool written;
};

// Throws shape_error where one that is written shares memory with the other.
inline void expect_apart(const named_range& a, const named_range& b) {
  if ((a.written || b.written) && overlap(a.bytes, b.bytes))
    throw shape_error(sentence(a.name, " and ", b.name,
                               " share memory; what a step adds to has memory of its own"));
}

template <class Device>
void expect_finite_rows(Device& on, const char* what, view<const typename Device::scalar> rows,
                        row_range range, const char* why) {
  if (const auto found = find_not_finite(on, rows.rows_in(range)))
    throw data_error(sentence("batch: ", what, " are ", found->value, " at place ",
                              range.first + found->row, ", column ", found->column, "; ", why));
}

}  // namespace detail

template <class Device>
void step_runner<Device>::expect_size(const char* what, std::size_t size, position wanted) {
  if (position(size) != wanted)
    throw shape_error(sentence(what, " has ", size, " entries, the plan has ", wanted));
}

template <class Device>
template <class S>
bool step_runner<Device>::fits(view<S> given, position rows, position cols) {
  return given.rows == rows && given.cols == cols &&
         (rows * cols == 0 || (given.data != nullptr && given.stride >= cols));
}

template <class Device>
template <class S>
void step_runner<Device>::expect_rows(const char* what, view<S> given, position rows,
                                      position cols) {
  if (fits(given, rows, cols)) return;
  if (given.rows != rows || given.cols != cols)
    throw shape_error(sentence(what, ": ", given.rows, " rows of ", given.cols,
                               " columns, the plan has ", rows, " of ", cols));
  throw shape_error(sentence(what, ": ", rows, " rows of ", cols, " columns, ",
                             given.data == nullptr ? std::string("but no data")
                                                   : sentence(given.stride, " entries apart")));
}

// The stages, if the plan is this model's and as it was made.
template <class Device>
std::vector<stage_facts> step_runner<Device>::checked_stages() const {
  if (plan_.model != model().fingerprint())
    throw shape_error(
        "engine: the plan was made for another model; plan(model, loss, samples) makes its own");
  if (plan_.seal != seal_of(plan_))
    throw shape_error(
        "engine: the plan was changed after it was made; ask for what you want in plan_options");
  return facts_of(model(), plan_.choice.stages, plan_.choice.fuses_head, lowest_);
}

// The bytes to allocate: what the plan says, if it is this loss's.
template <class Device>
std::size_t step_runner<Device>::checked_bytes() {
  const std::size_t needed = planned_bytes<Device>(model(), plan_, couples()).total();
  if (needed != plan_.peak())
    throw shape_error(sentence("engine: the plan says ", plan_.peak(), " bytes, the step needs ",
                               needed, "; it was made for another loss"));
  return needed - ledger_bytes();
}

template <class Device>
std::size_t step_runner<Device>::ledger_bytes() {
  arena nothing;
  ledger_.place(nothing, model(), plan_, couples());
  return nothing.used();
}

template <class Device>
void step_runner<Device>::check(const parameter_list& parameters, const gradient_list& gradient,
                                bool labels, byte_range result) const {
  const batch_type& data = *data_;
  const std::array<detail::named_range, 11> arrays{
      {{"the result", result, true},
       {"batch: sample_ids", bytes_of(data.sample_ids), false},
       {"batch: tokens", bytes_of(data.tokens), false},
       {"batch: rows", bytes_of(data.rows), false},
       {"batch: d_rows", bytes_of(data.d_rows), true},
       {"batch: labels", bytes_of(data.labels), false},
       {"batch: weights", bytes_of(data.weights), false},
       {"batch: context", bytes_of(data.context), false},
       {"batch: d_context", bytes_of(data.d_context), true},
       {"batch: initial", bytes_of(data.initial), false},
       {"batch: d_initial", bytes_of(data.d_initial), true}}};
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) detail::expect_apart(arrays[j], arrays[i]);
  const auto expect_apart_from_heads = [&](const detail::named_range& other) {
    for (const head_batch<scalar>& own : data.heads) {
      detail::expect_apart({"batch: labels of a head", bytes_of(own.labels), false}, other);
      detail::expect_apart({"batch: weights of a head", bytes_of(own.weights), false}, other);
    }
  };
  for (const auto& other : arrays) expect_apart_from_heads(other);
  parameters.for_each_range([&](byte_range own) {
    for (const auto& other : arrays) detail::expect_apart({"parameters", own, false}, other);
  });
  gradient.for_each_range([&](byte_range own) {
    parameters.for_each_range([&](byte_range values) {
      detail::expect_apart({"parameters", values, false}, {"gradient", own, true});
    });
    for (const auto& other : arrays) detail::expect_apart({"gradient", own, true}, other);
    expect_apart_from_heads({"gradient", own, true});
    position same = 0;
    gradient.for_each_range([&](byte_range other) { same += overlap(own, other); });
    if (same > 1)
      throw shape_error(
          "gradient: two of its views share memory; what a step adds to has memory of its own");
  });
  check_parameters(parameters, gradient);
  check_input();
  check_streams(!gradient.empty());
  if (!data_->sample_ids.empty())
    expect_size("batch: sample_ids", data_->sample_ids.size(), samples().segments());
  check_heads(labels);
}

template <class Device>
void step_runner<Device>::check_heads(bool labels) const {
  for (position h = reading_heads_.first; h < reading_heads_.last; ++h) {
    const output_head& own = heads_[std::size_t(h)];
    try {
      if (!std::isfinite(own.factor))
        throw data_error(sentence("batch: a factor of ", own.factor, "; it is finite"));
      if (own.facts.sees_rows) {
        check_normaliser(own.data);
      } else if (labels) {
        check_labels(own.facts, samples(), own.data, model().heads[std::size_t(h)].out);
        own.loss->check(samples().segments());
      }
    } catch (const data_error& e) {
      if (head_count() == 1) throw;
      throw data_error(sentence("head ", h, ": ", e.what()));
    } catch (const shape_error& e) {
      if (head_count() == 1) throw;
      throw shape_error(sentence("head ", h, ": ", e.what()));
    }
  }
}

template <class Device>
void step_runner<Device>::expect_head(const char* what, position head) const {
  if (head < 0 || head >= head_count())
    throw shape_error(sentence(what, ": there is no head ", head, "; the model has ", head_count(),
                               ", counted from 0"));
}

// A buffer's size, or the shape of each view of a list.
template <class Device>
template <class S>
void step_runner<Device>::check_shape(const char* what, const tensor_list<S>& given,
                                      position size) const {
  if (!given.listed()) return expect_size(what, given.buffer().size(), size);
  const auto& entries = model().table.entries;
  if (given.views() != entries.size())
    throw shape_error(sentence(what, ": a list of ", given.views(), " views, the table has ",
                               entries.size(), " entries"));
  constexpr bool of_gradient = !std::is_const_v<S>;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const auto& [rows, cols] = std::pair(entries[k].rows, entries[k].cols);
    const view<S> own = given.at(k, 0, entries[k]);
    if ((!of_gradient || entries[k].gradient >= 0) && !fits(own, rows, cols))
      expect_rows(sentence(what, ", view ", k, " (", entries[k].name, ")").c_str(), own, rows,
                  cols);
  }
}

template <class Device>
void step_runner<Device>::check_parameters(const parameter_list& parameters,
                                           const gradient_list& gradient) const {
  check_shape("parameters", parameters, model().table.parameters);
  if (!gradient.empty()) check_shape("gradient", gradient, model().table.gradients);
  const auto& entries = model().table.entries;
  for (std::size_t k = 0; k < entries.size(); ++k)
    if (const auto found = find_not_finite(
            on_, view<const scalar>(parameters.at(k, entries[k].offset, entries[k]))))
      throw data_error(sentence("parameter ", entries[k].name, " is ", found->value, " at row ",
                                found->row, ", column ", found->column,
                                "; parameters are finite: look at the update that changed it, or "
                                "where it was loaded"));
}

template <class Device>
void step_runner<Device>::check_input() const {
  const position tokens = samples().tokens();
  if (model().takes_tokens()) {
    expect_size("batch: tokens", data_->tokens.size(), tokens);
    for (position t = 0; t < tokens; ++t)
      if (const std::int32_t token = data_->tokens[std::size_t(t)];
          token < 0 || (model().vocabulary > 0 && token >= model().vocabulary))
        throw data_error(sentence("batch: token ", token, " at place ", t,
                                  " is outside the vocabulary of ", model().vocabulary));
    if (data_->d_rows.rows != 0)
      throw shape_error("batch: d_rows is given, but the model takes tokens");
    if (data_->rows.rows != 0)
      throw shape_error("batch: rows are given, but the model takes tokens");
  } else {
    if (!data_->tokens.empty())
      throw shape_error("batch: tokens are given, but the model takes rows");
    expect_rows("batch: rows", data_->rows, tokens, plan_.shape.features);
    if (data_->d_rows.rows == 0) return;
    expect_rows("batch: d_rows", data_->d_rows, tokens, plan_.shape.features);
    if (!wants_input_gradient())
      throw shape_error("batch: d_rows needs a plan that asks for input_gradient");
  }
}

template <class Device>
void step_runner<Device>::check_streams(bool gradient) const {
  if (model().crosses()) {
    const position rows = plan_.shape.context.tokens(), cols = plan_.shape.context_features;
    expect_rows("batch: context", data_->context, rows, cols);
    if (gradient) expect_rows("batch: d_context", data_->d_context, rows, cols);
  }
  if (!data_->initial.empty()) expect_size("batch: initial", data_->initial.size(), initial_size());
  if (!data_->d_initial.empty()) {
    expect_size("batch: d_initial", data_->d_initial.size(), initial_size());
    if (!wants_input_gradient())
      throw shape_error("batch: d_initial needs a plan that asks for input_gradient");
  }
  if (plan_.shape.prefix > 0 && initial_size() > 0 && data_->initial.empty())
    throw shape_error(sentence("batch: the plan has a prefix of ", plan_.shape.prefix,
                               " memory rows; give them in batch.initial"));
}

// 0 times a number that is not finite is none: no gradient can leave out single rows of a sample.
template <class Device>
void step_runner<Device>::check_finite(bool gradient) const {
  if (none_counts_) return;
  const char* const why =
      model().tallies() ? "a gradient needs finite ones everywhere: a side loss counts every row"
      : some_head_counts_all()
          ? "a gradient needs finite ones everywhere"
          : "a gradient needs finite ones in all of a sample of which a label counts";
  const auto look = [&](const char* what, view<const scalar> rows, const packed& axis) {
    if (all_count_) return detail::expect_finite_rows(on_, what, rows, {0, axis.tokens()}, why);
    for (position s = 0; s < axis.segments(); ++s)
      if (ledger_.segment_counts(s, 0) != 0)
        detail::expect_finite_rows(on_, what, rows, axis.segment(s), why);
  };
  if (gradient && !model().takes_tokens()) look("rows", data_->rows, samples());
  if (gradient && model().crosses()) look("context rows", data_->context, plan_.shape.context);
  if (data_->initial.empty()) return;
  if (const auto found =
          find_not_finite(on_, view<const scalar>(data_->initial.data(), 1, initial_size())))
    throw data_error(sentence("batch: initial is ", found->value, " at entry ", found->column,
                              "; states and prefix rows are finite: where there is none yet "
                              "give zeros, or leave initial empty"));
}

}  // namespace streambp
