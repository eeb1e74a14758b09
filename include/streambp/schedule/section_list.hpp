// A model's sections one by one, in the order of the forward pass: their programs, widths, slots,
// parameters and forced cuts. What follows from them knows no type of model.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../core/random.hpp"
#include "parameters.hpp"
#include "program.hpp"

namespace streambp {

// A slot of one of a section's operators.
struct slot_info {
  slot_kind kind{};
  int op = 0;
  position rows = 0;
  position cols = 0;
  int parameter = -1;     // entry of the table, of one that exists: -1 where an option is off
  bool boundary = false;  // of a read half: the memory that its other half writes

  bool is_parameter() const { return kind == slot_kind::parameter || kind == slot_kind::shared; }
};

struct section_instance {
  std::string name;  // of its layer with the most parameters: blocks.3.attention
  const program* steps = nullptr;
  int type = 0;  // index into split_model::trunk_types; of head h: -1 - h
  position repetition = 0;
  int element = 0;
  bool forced_cut = false;  // a stage must begin here
  half part = half::whole;
  dependency split{};
  bool holds_state = false;
  bool holds_tally = false;
  bool crosses = false;
  bool trains = false;
  std::array<position, program::most> widths{};  // of the program's values
  std::vector<slot_info> slots;                  // by operator
  std::vector<int> owned;                        // parameters that no layer before it owns
  std::vector<std::string> counted;              // layers that say counts_flops
  position in() const { return widths[0]; }
  position out = 0;
  bool empty() const { return steps->size == 0; }

  // For people: blocks.3.attention, or one of its halves.
  std::string label() const {
    return part == half::whole ? name : name + (part == half::read ? " (read)" : " (remember)");
  }
  bool uses(int parameter) const {
    return std::any_of(slots.begin(), slots.end(), [&](const slot_info& s) {
      return s.is_parameter() && s.parameter == parameter;
    });
  }
};

struct section_list {
  std::vector<section_instance> sections;
  std::vector<section_instance> heads;  // one without steps: the trunk's rows are the loss's
  parameter_table table;
  position vocabulary = 0;             // of a model that takes tokens, if its first layer says one
  position shared_with_head = -1;      // the last section that uses a parameter of a head; -1: none
  bool heads_share = false;            // two heads use one parameter
  std::vector<std::string> uncounted;  // layers whose own loops count no FLOPs

  // Head h is section count() + h.
  const section_instance& operator[](position i) const {
    return std::size_t(i) < count() ? sections[std::size_t(i)] : heads[std::size_t(i) - count()];
  }
  std::size_t count() const { return sections.size(); }
  position head_count() const { return position(heads.size()); }
  position section_of_head(position h) const { return position(count()) + h; }
  bool takes_tokens() const { return sections.front().steps->operators[0].takes_tokens; }

  // Equal for models that one plan fits.
  std::uint64_t fingerprint() const {
    std::uint64_t hash = 1;
    for (const section_instance& h : heads) hash = mixed(hash, std::uint64_t(h.out));
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
  // Of rows that pass between layers of heads; of the trunk's where there are none.
  position widest_of_heads() const {
    position w = 0;
    for (const section_instance& h : heads)
      w = std::max(w,
                   h.empty() ? trunk_width() : *std::max_element(h.widths.begin(), h.widths.end()));
    return w;
  }
  // Of rows that pass between sections, and of the input's.
  position widest() const {
    position w = takes_tokens() ? 0 : sections.front().in();
    for (const auto& s : sections) w = std::max(w, s.out);
    return w;
  }

  // Calls f(slot, slot's number, offset, size) for every state of section i that a caller may give:
  // memory rows of a prefix, a carry before the first token. Offsets are into batch::initial, from
  // `offset` on; returns the next section's.
  template <class F>
  position for_each_initial(position i, position prefix, position offset, F&& f) const {
    const auto& slots = (*this)[i].slots;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const slot_info& slot = slots[k];
      if (slot.boundary || (slot.kind != slot_kind::memory && slot.kind != slot_kind::carry))
        continue;
      const position size = slot.cols * (slot.kind == slot_kind::memory ? prefix : slot.rows);
      f(slot, k, offset, size);
      offset += size;
    }
    return offset;
  }
  // Scalars of batch::initial.
  position initial_size(position prefix) const {
    position size = 0;
    for (position i = 0; i < position(count()); ++i)
      size = for_each_initial(i, prefix, size, [](auto&&...) {});
    return size;
  }
};

}  // namespace streambp
