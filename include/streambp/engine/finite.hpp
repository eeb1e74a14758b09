// A loss or a gradient that is not finite: a second pass finds the first rows that are not.
#pragma once

#include <cmath>

#include "step_runner.hpp"

namespace streambp {

template <class Device>
void step_runner<Device>::expect_finite(double value, const gradient_list& gradient) {
  if (!refuses_not_finite_) return;
  std::string what;
  if (!std::isfinite(value)) what = sentence("the loss is ", value);
  // The last parameter is the first that the backward reached.
  const auto& entries = model().table.entries;
  for (std::size_t k = entries.size(); k-- > 0 && what.empty();) {
    if (entries[k].gradient < 0 || gradient.empty()) continue;
    const view<const scalar> own = gradient.at(k, entries[k].gradient, entries[k]);
    if (const auto found = find_not_finite(on_, own))
      what = sentence("the gradient of ", entries[k].name, " is ", found->value, " at row ",
                      found->row, ", column ", found->column);
  }
  const auto look = [&](const char* name, view<const scalar> rows) {
    if (!what.empty()) return;
    if (const auto found = find_not_finite(on_, rows))
      what = sentence(name, " is ", found->value, " at place ", found->row, ", column ",
                      found->column);
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
template <class Device>
std::string step_runner<Device>::origin_of_the_infinite() {
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

template <class Device>
void step_runner<Device>::look_at(view<const scalar> rows, row_range at, position section) {
  if (!looking_ || !found_.empty()) return;
  if (const auto found = find_not_finite(on_, rows)) {
    const position row = at.first + found->row, segment = samples().segment_at(row);
    position s = 0;
    while (s + 1 < stage_count() && stage(s).plan.last <= section) ++s;
    const position head = section - position(model().count());
    found_ = sentence("the first rows that are not finite are those that ",
                      name_of(instance(section)), " gives (stage ", s,
                      head < 0            ? std::string()
                      : head_count() == 1 ? ", head"
                                          : sentence(", head ", head),
                      "): ", found->value, " at row ", row, " (sample ", segment, ", position ",
                      row - samples().segment(segment).first, "), column ", found->column);
  }
}

// Its layers with parameters, by name.
template <class Device>
std::string step_runner<Device>::name_of(const section_instance& instance) const {
  std::string all, last;
  for (const slot_info& slot : instance.slots) {
    if (slot.parameter < 0) continue;
    const std::string& name = model().table.entries[std::size_t(slot.parameter)].name;
    const std::string layer = name.substr(0, name.rfind('.'));
    if (layer == last) continue;
    all += (all.empty() ? "" : ", ") + layer;
    last = layer;
  }
  return all.empty() ? instance.label() : all;
}

}  // namespace streambp
