// What the host adds up of a step: rows and sums of losses, in memory of its own, whatever device
// runs the rest. One function lays it out: on nothing to predict the bytes, on a block to take
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../core/arena.hpp"
#include "../primitives/row_terms.hpp"
#include "../schedule/plan.hpp"
#include "../traits/loss_list.hpp"

namespace streambp {

// Of one head: the targets of a head chunk's rows, and the loss's sums.
struct head_ledger {
  view<std::int32_t> first;    // by row, and one more: its first target
  view<std::int32_t> targets;  // by target, as all below
  view<label_place> places;
  view<double> weights;
  view<row_statistics> statistics;
  view<row_gradient> slopes;

  view<double> grain_values;    // of the loss, by head grain
  view<double> segment_scales;  // what a counted token of a segment weighs
  view<double> segment_sums;    // of a coupled loss of tokens, as what follows
  view<double> segment_slopes;
  view<row_statistics> seen;  // by label's place: from the sweep that sums up to that of gradients
};

struct ledger {
  std::vector<head_ledger> heads;
  view<double> section_values;  // of side losses
  view<double> segment_counts;  // not 0: some head counts something of the segment

  // Heads run one after the other: their rows share addresses.
  void place(arena& from, const section_list& model, const step_plan& p, coupled_heads couples) {
    const position segments = p.shape.samples.segments();
    heads.assign(model.heads.size(), {});
    section_values = {};
    if (model.tallies()) section_values = from.take<double>(position(model.count()), 1);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      heads[h].grain_values = from.take<double>(p.head_grains.size(), 1);
      heads[h].segment_scales = from.take<double>(segments, 1);
      if (!couples.of_tokens(position(h))) continue;
      heads[h].segment_sums = from.take<double>(segments, 1);
      heads[h].segment_slopes = from.take<double>(segments, 1);
      heads[h].seen = from.take<row_statistics>(p.shape.samples.tokens(), 1);
    }
    segment_counts =
        heads.size() > 1 ? from.take<double>(segments, 1) : heads.front().segment_scales;
    const std::size_t mark = from.used();
    for (head_ledger& head : heads) {
      from.rewind(mark);
      place_rows(from, p, head);
    }
  }

 private:
  // A row predicts the next token, and the last row of a parent the first one of each child.
  static void place_rows(arena& from, const step_plan& p, head_ledger& head) {
    const position rows = p.largest_head_chunk(), targets = rows + p.shape.samples.child_count();
    head.first = from.take<std::int32_t>(rows + 1, 1);
    head.targets = from.take<std::int32_t>(targets, 1);
    head.places = from.take<label_place>(targets, 1);
    head.weights = from.take<double>(targets, 1);
    head.statistics = from.take<row_statistics>(targets, 1);
    head.slopes = from.take<row_gradient>(targets, 1);
  }
};

// Zeroed lines of the host's memory.
class host_block {
 public:
  explicit host_block(std::size_t bytes) : lines_((bytes + sizeof(line) - 1) / sizeof(line)) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(lines_)); }

 private:
  struct alignas(64) line {
    std::byte bytes[64];
  };
  std::vector<line> lines_;
};

}  // namespace streambp
