// A model's sections one by one, in the order of the forward pass, with their widths, parameters
// and forced cuts.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "../core/random.hpp"
#include "parameters.hpp"
#include "scopes.hpp"
#include "section.hpp"

namespace streambp {

struct section_instance {
  std::string name;  // of its layer with the most parameters: blocks.3.attention
  int type = 0;      // index into split_model::trunk_types; -1: the head
  position repetition = 0;
  position ordinal = 0;  // among the instances of its type
  int element = 0;
  bool forced_cut = false;  // a stage must begin here
  half part = half::whole;
  dependency split{};
  bool holds_state = false;
  bool holds_tally = false;
  bool crosses = false;
  bool trains = false;
  std::array<position, program::most> widths{};  // of the program's values
  std::vector<int> parameters;                   // entries of the table, by operator and slot
  std::vector<int> owned;                        // those that no layer before it owns
  position in() const { return widths[0]; }
  // For people: blocks.3.attention, or one of its halves.
  std::string label() const {
    return part == half::whole ? name : name + (part == half::read ? " (read)" : " (remember)");
  }
  position out = 0;
};

template <class Model>
struct instance_list {
  using split = split_model<Model>;

  typename split::trunk_types trunk;
  typename split::head_type head_section;
  std::vector<section_instance> sections;
  section_instance head;
  parameter_table table;
  position vocabulary = 0;         // of a model that takes tokens, if its first layer says one
  position shared_with_head = -1;  // the last section that uses a parameter of the head; -1: none

  // `features`: width of the input rows; ignored when the model takes tokens. Throws shape_error.
  instance_list(const Model& model, position features)
      : instance_list(elements_of(unnamed(model)), features, scopes_of(model)) {}

  static constexpr bool takes_tokens() {
    return std::tuple_element_t<0, typename split::trunk_types>::steps.operators[0].takes_tokens;
  }

  std::size_t count() const { return sections.size(); }
  // Equal for models that one plan fits.
  std::uint64_t fingerprint() const {
    std::uint64_t hash = mixed(1, std::uint64_t(head.out));
    for (const section_instance& s : sections) {
      hash = mixed(hash, std::uint64_t(s.type));
      for (const position w : s.widths) hash = mixed(hash, std::uint64_t(w));
    }
    for (const parameter_info& p : table.entries)
      for (const position n : {p.rows, p.cols, p.gradient})
        hash = mixed(hash, std::uint64_t(n + 1));
    return hash;
  }
  position trunk_width() const { return sections.back().out; }
  // The first section with a trained parameter: no backward runs below it.
  position lowest_trained() const {
    position i = 0;
    while (i < position(sections.size()) && !sections[std::size_t(i)].trains) ++i;
    return i;
  }
  bool tallies() const {
    return std::any_of(sections.begin(), sections.end(),
                       [](const auto& s) { return s.holds_tally; });
  }
  bool crosses() const {
    return std::any_of(sections.begin(), sections.end(), [](const auto& s) { return s.crosses; });
  }
  // Of rows that pass between sections, and of the input's.
  position widest() const {
    position w = takes_tokens() ? 0 : sections.front().in();
    for (const auto& s : sections) w = std::max(w, s.out);
    return w;
  }

 private:
  instance_list(const typename split::elements& elements, position features,
                const std::vector<layer_scope>& scopes)
      : trunk(split::trunk(elements)), head_section(split::head(elements)) {
    std::vector<position> ordinals(split::trunk_count, 0);
    std::map<std::string, int> names;
    position width = features;
    const layer_scope* scope = scopes.data();  // of the next section's first layer
    for_each_index<split::trunk_elements>([&](auto e) {
      const position count = count_of(std::get<e>(elements));
      if (count < 1)
        throw shape_error(sentence("repeat: ", count, " blocks; a model has at least one"));
      std::string prefix;
      if constexpr (is_repeat<std::tuple_element_t<e, typename split::elements>>)
        prefix = unique(names, scope->outside + "blocks");
      const layer_scope* const first = scope;
      for (position r = 0; r < count; ++r) {
        scope = first;
        const std::string place = prefix.empty() ? "" : prefix + "." + std::to_string(r) + ".";
        for_each_index<split::trunk_count>([&](auto t) {
          using type = std::tuple_element_t<t, typename split::trunk_types>;
          if constexpr (type::element == e)
            width = append(std::get<t>(trunk), t, r, ordinals[t]++, width, place, names, scope);
        });
      }
    });
    head = describe<typename split::head_type>(head_section, -1, 0, 0, width, "", names, scope);
    table.expect_unique_names();
    for (position i = 0; i < position(count()); ++i)
      for (const int number : sections[std::size_t(i)].parameters)
        if (number >= 0 && uses(head, number)) shared_with_head = i;
  }

  static std::string unique(std::map<std::string, int>& names, const std::string& name) {
    const int n = ++names[name];
    return n == 1 ? name : name + "_" + std::to_string(n);
  }

  static bool uses(const section_instance& section, int number) {
    return std::find(section.parameters.begin(), section.parameters.end(), number) !=
           section.parameters.end();
  }
  template <class Section>
  static constexpr bool shares() {
    return []<class... P>(std::type_identity<std::tuple<P...>>) {
      return (false || ... ||
              (layer_traits<typename P::layer_type>::count::of(slot_kind::shared) > 0));
    }(std::type_identity<typename Section::leaf_types>{});
  }

  template <class Section>
  position append(const Section& s, int type, position repetition, position ordinal, position width,
                  const std::string& place, std::map<std::string, int>& names,
                  const layer_scope*& scope) {
    if constexpr (Section::part == half::read) {
      section_instance again = sections.back();  // the other half has the same layers
      again.type = type;
      again.part = half::read;
      again.forced_cut = true;
      again.out = again.widths[Section::steps.result];
      again.split = Section::steps.split();
      again.holds_state = Section::steps.holds_state();
      again.holds_tally = Section::steps.holds_tally();
      again.crosses = Section::steps.crosses();
      again.trains = Section::steps.trains();
      sections.push_back(again);
    } else {
      sections.push_back(
          describe<Section>(s, type, repetition, ordinal, width, place, names, scope));
      sections.back().forced_cut = shares<Section>() && sections.size() > 1;
    }
    sections.back().ordinal = ordinal;
    return Section::part == half::remember ? width : sections.back().out;
  }

  template <class Section>
  section_instance describe(const Section& s, int type, position repetition, position ordinal,
                            position width, const std::string& place,
                            std::map<std::string, int>& names, const layer_scope*& scope) {
    section_instance result;
    result.type = type;
    result.repetition = repetition;
    result.ordinal = ordinal;
    result.element = Section::element;
    result.part = Section::part;
    result.split = Section::steps.split();
    result.holds_state = Section::steps.holds_state();
    result.holds_tally = Section::steps.holds_tally();
    result.crosses = Section::steps.crosses();
    result.trains = Section::steps.trains();
    result.widths[0] = width;
    position most = -1;  // parameters of a layer
    constexpr program whole = whole_program<Section>();
    for_each_index<whole.size>([&](auto i) {
      constexpr step st = whole.steps[i];
      if constexpr (st.op < 0) {
        if (result.widths[st.skip] != result.widths[st.in])
          throw shape_error(sentence("residual: its input has ", result.widths[st.skip],
                                     " features, its branch gives ", result.widths[st.in]));
        result.widths[st.out] = result.widths[st.in];
      } else {
        const auto& placed_layer = std::get<st.op>(s.leaves);
        using placed_type = std::decay_t<decltype(placed_layer)>;
        using traits = layer_traits<typename placed_type::layer_type>;
        const position in = result.widths[st.in];
        result.widths[st.out] = traits::features(placed_layer.layer, in);
        const std::string name = unique(names, place + scope[st.op].inside + traits::name());
        if (in < 0 || in > largest_size || result.widths[st.out] < 0 ||
            result.widths[st.out] > largest_size)
          throw shape_error(sentence(name, ": rows of ", in, " and ", result.widths[st.out],
                                     " features; at most ", largest_size, ", and none below 0"));
        if constexpr (traits::takes_tokens && requires { placed_layer.layer.vocabulary; })
          vocabulary = placed_layer.layer.vocabulary;
        const position before = table.parameters;
        std::apply(
            [&](const auto&... slot) { (declare<placed_type::trains>(slot, name, result), ...); },
            traits::slots(placed_layer.layer, in));
        if (const position own = table.parameters - before; own > most) {
          most = own;
          result.name = name;
        }
      }
    });
    result.out = result.widths[Section::steps.result];
    scope += std::tuple_size_v<typename Section::leaf_types>;
    return result;
  }

  // A remember half knows the widths of the whole item, which its read half takes over.
  template <class Section>
  static constexpr program whole_program() {
    if constexpr (Section::part == half::remember)
      return []<class Item, half P, int E>(std::type_identity<section<Item, P, E>>) {
        return program_of<Item>();
      }(std::type_identity<Section>{});
    else
      return Section::steps;
  }

  template <bool Trains, class Slot>
  void declare(const Slot& slot, const std::string& layer, section_instance& into) {
    if (slot.rows < 0 || slot.cols < 0 || slot.rows > largest_size || slot.cols > largest_size ||
        double(slot.rows) * double(slot.cols) > double(largest_size))
      throw shape_error(sentence(layer, ".", Slot::tag::name, ": a slot of ", slot.rows, " x ",
                                 slot.cols, " entries; at most ", largest_size,
                                 ", and none below 0"));
    if constexpr (Slot::kind == slot_kind::parameter) {
      if (slot.rows * slot.cols == 0) {  // an option that is off, such as a bias
        into.parameters.push_back(-1);
        return;
      }
      into.parameters.push_back(table.add({layer + "." + Slot::tag::name, slot.rows, slot.cols, 0,
                                           -1, slot.initial, &tag_identity<typename Slot::tag>},
                                          Trains));
      into.owned.push_back(into.parameters.back());
    } else if constexpr (Slot::kind == slot_kind::shared) {
      const int owner = table.owner(&tag_identity<typename Slot::tag>, slot.rows, slot.cols, layer);
      if (uses(into, owner))  // each use is a sweep of its own
        throw shape_error(
            sentence(layer, ": shares ", table.entries[std::size_t(owner)].name,
                     " with a layer of the same residual or head; give each a residual "
                     "of its own before the head"));
      into.parameters.push_back(owner);
    }
  }
};

}  // namespace streambp
