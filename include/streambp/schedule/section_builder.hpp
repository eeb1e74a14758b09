// Sections are added one after the other: names, the table of parameters, and what is refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scopes.hpp"
#include "section_list.hpp"

namespace streambp {

class section_builder {
 public:
  // `scopes`: of all layers, those of a repeat once.
  section_builder(section_list& into, position features, const std::vector<layer_scope>& scopes)
      : to_(into), width_(features), scope_(scopes.data()) {}

  void begin_element(position count, bool repeats) {
    if (count < 1)
      throw shape_error(sentence("repeat: ", count, " blocks; a model has at least one"));
    blocks_ = repeats ? unique(scope_->outside + "blocks") + "." : "";
    first_scope_ = scope_;
  }
  void begin_repetition(position r) {
    repetition_ = r;
    scope_ = first_scope_;
    place_ = blocks_.empty() ? "" : blocks_ + std::to_string(r) + ".";
  }
  void begin_heads() {
    repetition_ = 0;
    place_ = "";
  }

  section_instance& begin_section(const program& steps, int type, int element) {
    section_ = {};
    section_.element = element;
    section_.repetition = repetition_;
    section_.widths[0] = width_;
    set_program(steps, type);
    layers_ = 0;
    most_ = -1;
    return section_;
  }
  // value[out] = value[skip] + value[in]
  void add_sum(const step& s) {
    if (section_.widths[s.skip] != section_.widths[s.in])
      throw shape_error(sentence("residual: its input has ", section_.widths[s.skip],
                                 " features, its branch gives ", section_.widths[s.in]));
    section_.widths[s.out] = section_.widths[s.in];
  }
  void add_layer(const step& s, const char* name, position out, bool trains) {
    const position in = section_.widths[s.in];
    section_.widths[s.out] = out;
    layer_ = unique(place_ + scope_[s.op].inside + name);
    layer_trains_ = trains;
    if (in < 0 || in > largest_size || out < 0 || out > largest_size)
      throw shape_error(sentence(layer_, ": rows of ", in, " and ", out, " features; at most ",
                                 largest_size, ", and none below 0"));
    ++layers_;
    of_layer_ = 0;
    name_section();
  }
  // Whether the layer that was added last counts its FLOPs.
  void set_counted(bool counts) { (counts ? section_.counted : to_.uncounted).push_back(layer_); }
  void set_vocabulary(position vocabulary) { to_.vocabulary = vocabulary; }
  // Of the layer that was added last.
  void add_slot(slot_info slot, const char* name, const void* tag, const initial_value& initial) {
    if (slot.rows < 0 || slot.cols < 0 || slot.rows > largest_size || slot.cols > largest_size ||
        double(slot.rows) * double(slot.cols) > double(largest_size))
      throw shape_error(sentence(layer_, ".", name, ": a slot of ", slot.rows, " x ", slot.cols,
                                 " entries; at most ", largest_size, ", and none below 0"));
    if (slot.kind == slot_kind::parameter && slot.rows * slot.cols > 0) {  // 0: an option is off
      slot.parameter = to_.table.add(
          {layer_ + "." + name, slot.rows, slot.cols, 0, -1, initial, tag}, layer_trains_);
      section_.owned.push_back(slot.parameter);
      of_layer_ += slot.rows * slot.cols;
      name_section();
    } else if (slot.kind == slot_kind::shared) {
      slot.parameter = to_.table.owner(tag, slot.rows, slot.cols, layer_);
      if (section_.uses(slot.parameter))  // each use is a sweep of its own
        throw shape_error(sentence(
            layer_, ": shares ", to_.table.entries[std::size_t(slot.parameter)].name,
            " with a layer of the same residual or head; give each a residual of its own before "
            "the head"));
    }
    section_.slots.push_back(slot);
  }
  void finish_section() {
    scope_ += layers_;
    section_.out = section_.widths[section_.steps->result];
    if (section_.type < 0) {
      to_.heads.push_back(section_);
      return;
    }
    for (const slot_info& s : section_.slots)
      section_.forced_cut =
          section_.forced_cut || (s.kind == slot_kind::shared && !to_.sections.empty());
    to_.sections.push_back(section_);
    if (section_.part == half::whole) width_ = section_.out;
  }
  // The other half of the section that was added last: it has the same layers, and those behind
  // their read.
  void add_read(const program& steps, int type) {
    section_instance& remember = to_.sections.back();
    section_ = remember;
    std::erase_if(remember.slots,
                  [&](const slot_info& s) { return s.op >= remember.steps->operator_count; });
    set_program(steps, type);
    section_.forced_cut = true;
    section_.out = section_.widths[steps.result];
    for (slot_info& s : section_.slots) s.boundary = steps.operators[s.op].split.forces_cut();
    to_.sections.push_back(section_);
    width_ = section_.out;
  }

  // Throws shape_error when two parameters have one name.
  void finish() {
    to_.table.expect_unique_names();
    for (const section_instance& head : to_.heads)
      for (const slot_info& s : head.slots) {
        if (s.parameter < 0) continue;
        for (position i = 0; i < position(to_.count()); ++i)
          if (to_[i].uses(s.parameter)) to_.shared_with_head = std::max(to_.shared_with_head, i);
        for (const section_instance& other : to_.heads)
          to_.heads_share = to_.heads_share || (&other != &head && other.uses(s.parameter));
      }
  }

 private:
  std::string unique(const std::string& name) {
    const int n = ++names_[name];
    return n == 1 ? name : name + "_" + std::to_string(n);
  }
  // After the layer that has the most parameters so far.
  void name_section() {
    if (of_layer_ <= most_) return;
    most_ = of_layer_;
    section_.name = layer_;
  }
  void set_program(const program& steps, int type) {
    section_.steps = &steps;
    section_.type = type;
    section_.part = steps.part;
    section_.split = steps.split();
    section_.holds_state = steps.holds_state();
    section_.holds_tally = steps.holds_tally();
    section_.crosses = steps.crosses();
    section_.trains = steps.trains();
  }

  section_list& to_;
  position width_;
  const layer_scope* scope_;  // of the next section's first layer
  const layer_scope* first_scope_ = nullptr;
  std::map<std::string, int> names_;
  std::string blocks_, place_, layer_;
  position repetition_ = 0;
  section_instance section_;
  int layers_ = 0;
  bool layer_trains_ = false;
  position of_layer_ = 0, most_ = -1;  // parameters of the layer, and of the largest so far
};

}  // namespace streambp
