// A plan: where a step is cut, how many rows are handled together, what is kept, and what that costs.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/grain.hpp"
#include "sweep.hpp"

namespace streambp {

// What a plan is for; all of it is known before any data.
struct plan_shape {
  packed samples;
  position features = 0;  // of the input rows; 0 for a model that takes tokens
  position prefix = 0;    // memory rows that every sample sees ahead of its own
  int threads = 1;
  geometry grains{};
  bool input_gradient = false;  // wanted for input rows or for the initial state
};

// The planner's choice.
struct plan_choice {
  std::vector<stage_plan> stages;
  position chunk = 0;       // rows at most
  position head_chunk = 0;  // rows at most
  bool fuses_head = false;  // the head runs inside the last stage; no gradient stream if it is alone
  bool operator==(const plan_choice&) const = default;
};

// Whether gradient rows of all tokens exist: not when one stage takes them from its own head.
inline bool streams(const plan_choice& c) { return c.stages.size() > 1 || !c.fuses_head; }

// Bytes by what lives there. They sum to the peak.
struct byte_table {
  std::size_t packing = 0;      // operands of products, by thread
  std::size_t checkpoints = 0;  // inputs of stages
  std::size_t stream = 0;       // gradient of the trunk's rows
  std::size_t kept = 0;         // memories, outputs, chunks that outlive their stage's forward
  std::size_t sums = 0;         // losses' sums over grains and segments
  std::size_t region = 0;       // the largest stage (or head): memories, gradients, one chunk
  std::size_t total() const { return packing + checkpoints + stream + kept + sums + region; }
};

struct step_plan {
  plan_shape shape;
  plan_choice choice;
  std::vector<position> grains;      // edges
  std::vector<position> head_grains; // edges; refine grains
  std::vector<position> chunks;      // edges
  std::vector<position> head_chunks; // edges; inside chunks when the head is fused
  std::vector<sweep> sweeps;
  byte_table bytes;
  position flops = 0;    // of one value and gradient, as the primitives count them
  position least_flops = 0;  // of plain backpropagation
  double cost = 0;       // flops weighted by the rate that the chunk's rows reach

  position chunk_count() const { return position(chunks.size()) - 1; }
  position largest_chunk() const { return largest(chunks); }
  position largest_head_chunk() const { return largest(head_chunks); }
  std::size_t peak() const { return bytes.total(); }

 private:
  static position largest(const std::vector<position>& edges) {
    position most = 0;
    for (std::size_t i = 1; i < edges.size(); ++i) most = std::max(most, edges[i] - edges[i - 1]);
    return most;
  }
};

// Head chunks inside every chunk, or over all rows.
inline std::vector<position> head_chunk_edges(const std::vector<position>& head_grains,
                                              const std::vector<position>& chunks, position rows,
                                              bool inside) {
  if (!inside) return chunk_edges(head_grains, rows);
  std::vector<position> edges{0};
  auto grain = head_grains.begin();
  for (std::size_t c = 1; c < chunks.size(); ++c) {
    std::vector<position> own{0};
    const position base = chunks[c - 1];
    for (; grain != head_grains.end() && *grain <= chunks[c]; ++grain)
      if (*grain > base) own.push_back(*grain - base);
    for (const position e : chunk_edges(own, rows))
      if (e > 0) edges.push_back(base + e);
  }
  return edges;
}

}  // namespace streambp
