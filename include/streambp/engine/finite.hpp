// A loss or a gradient that is not finite: a second pass finds the first rows that are not.
#pragma once

#include <cmath>
#include <limits>

#include "engine.hpp"

namespace streambp {

namespace detail {

// The number of the first entry that is not finite; the size if all are.
template <class S>
std::size_t first_not_finite(std::span<const S> entries) {
  constexpr std::size_t block = 4096;
  for (std::size_t i = 0; i < entries.size(); i += block) {
    const auto some = entries.subspan(i, std::min(block, entries.size() - i));
    bool all = true;  // without a branch an entry
    for (const S x : some) all &= std::abs(x) <= std::numeric_limits<S>::max();
    if (all) continue;
    for (std::size_t j = 0; j < some.size(); ++j)
      if (!std::isfinite(some[j])) return i + j;
  }
  return entries.size();
}

}  // namespace detail

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::expect_finite(double value,
                                                      std::span<const scalar> gradient) {
  if (!refuses_not_finite_) return;
  std::string what;
  if (!std::isfinite(value)) what = sentence("the loss is ", value);
  // The last parameter is the first that the backward reached.
  for (auto entry = model_.table.entries.rbegin();
       what.empty() && entry != model_.table.entries.rend(); ++entry) {
    if (entry->gradient < 0 || gradient.empty()) continue;
    const auto own = gradient.subspan(std::size_t(entry->gradient), std::size_t(entry->size()));
    if (const std::size_t i = detail::first_not_finite(own); i < own.size())
      what = sentence("the gradient of ", entry->name, " is ", own[i], " at row ",
                      position(i) / entry->cols, ", column ", position(i) % entry->cols);
  }
  const auto look = [&](const char* name, view<const scalar> rows) {
    for (position t = 0; what.empty() && t < rows.rows; ++t) {
      const std::span<const scalar> own(rows.row(t), std::size_t(rows.cols));
      if (const std::size_t i = detail::first_not_finite(own); i < own.size())
        what = sentence(name, " is ", own[i], " at place ", t, ", column ", i);
    }
  };
  const auto& d_initial = data_->d_initial;
  look("d_rows", data_->d_rows);
  look("d_context", data_->d_context);
  look("d_initial", view<const scalar>(d_initial.data(), position(!d_initial.empty()),
                                       position(d_initial.size())));
  if (what.empty()) return;
  const bool added = !gradient.empty() || data_->d_rows.rows > 0 || !d_initial.empty();
  throw numeric_error(sentence(what, "; ", origin_of_the_infinite(),
                               added ? "; the gradient is incomplete, begin it again" : ""));
}

// Runs the forward pass again and looks at the rows that each section gives.
template <class Device, class Model, class Loss>
std::string basic_engine<Device, Model, Loss>::origin_of_the_infinite() {
  found_.clear();
  looking_ = true;
  try {
    read(head_visit::value);
  } catch (...) {  // what it throws again says less than what is known by now
  }
  looking_ = false;
  if (!found_.empty()) return found_;
  return "the rows of every layer are finite, so it comes from the loss, from a backward, or stood "
         "in "
         "the gradient before";
}

template <class Device, class Model, class Loss>
void basic_engine<Device, Model, Loss>::look_at(view<const scalar> rows, row_range at,
                                                position section) {
  if (!looking_ || !found_.empty()) return;
  for (position t = 0; t < rows.rows; ++t) {
    const std::span<const scalar> own(rows.row(t), std::size_t(rows.cols));
    const std::size_t i = detail::first_not_finite(own);
    if (i == own.size()) continue;
    const position row = at.first + t, segment = samples().segment_at(row);
    position s = 0;
    while (s + 1 < stage_count() && stage(s).plan.last <= section) ++s;
    const bool head = section == position(model_.count());
    found_ = sentence("the first rows that are not finite are those that ",
                      name_of(head ? model_.head : instance(section)), " gives (stage ", s,
                      head ? ", head" : "", "): ", own[i], " at row ", row, " (sample ", segment,
                      ", position ", row - samples().segment(segment).first, "), column ", i);
    return;
  }
}

// Its layers with parameters, by name.
template <class Device, class Model, class Loss>
std::string basic_engine<Device, Model, Loss>::name_of(const section_instance& instance) const {
  std::string all, last;
  for (const int number : instance.parameters) {
    if (number < 0) continue;
    const std::string& name = model_.table.entries[std::size_t(number)].name;
    const std::string layer = name.substr(0, name.rfind('.'));
    if (layer == last) continue;
    all += (all.empty() ? "" : ", ") + layer;
    last = layer;
  }
  return all.empty() ? "a layer without parameters" : all;
}

}  // namespace streambp
