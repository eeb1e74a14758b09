// A plan: where a step is cut, how many rows are handled together, what is kept, and what that
// costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../core/big_count.hpp"
#include "../core/bytes.hpp"
#include "../core/grain.hpp"
#include "snapshots.hpp"
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
  packed context;               // the other stream, of a model that crosses to one
  position context_features = 0;
};

// The planner's choice.
struct plan_choice {
  std::vector<stage_plan> stages;
  position chunk = 0;       // rows at most
  position head_chunk = 0;  // rows at most
  bool fuses_head =
      false;  // the head runs inside the last stage; no gradient stream if it is alone
  position carry_interval =
      1;  // chunks between carries that are kept; more: the rest again, in turn
  bool operator==(const plan_choice&) const = default;
};

// Bytes by what lives there. They sum to the peak.
struct byte_table {
  std::size_t packing = 0;      // operands of products, by thread
  std::size_t checkpoints = 0;  // inputs of stages
  std::size_t stream = 0;       // gradient of the trunk's rows
  std::size_t kept = 0;         // memories, outputs, chunks that outlive their stage's forward
  std::size_t sums = 0;         // of losses, by row, grain and segment: the host's; of side losses
  std::size_t region = 0;       // the largest stage (or head): memories, gradients, one chunk
  std::size_t total() const {
    std::size_t all = 0;
    for (const std::size_t part : {packing, checkpoints, stream, kept, sums, region})
      all = sum_of_bytes(all, part);
    return all;
  }
};

// How far a budget reaches: the first longer sequence that no plan brings into it, with the bytes
// of the least plan there. Lengths are tokens of all samples, the last sample made longer.
struct length_limit {
  position fits = 0;  // tokens that a plan was found for; 0: nothing was asked
  position next = 0;  // tokens that none was found for; 0: every length that was tried fits
  byte_table bytes;   // of next
};

struct step_plan {
  plan_shape shape;
  plan_choice choice;
  edges grains;
  edges head_grains;  // refine grains
  edges chunks;
  edges head_chunks;                     // inside chunks when the head is fused
  edges context_grains, context_chunks;  // in the other stream
  std::vector<sweep> sweeps;
  byte_table bytes;
  big_count flops;                     // of one value and gradient, as the primitives count them
  big_count least_flops;               // of plain backpropagation
  double cost = 0;                     // flops weighted by the rate that the chunk's rows reach
  std::vector<bool> forced;            // by section: a stage must begin here
  std::vector<std::string> names;      // by section
  std::vector<std::string> heads;      // by head
  std::vector<std::string> uncounted;  // layers whose FLOPs are not among them
  std::size_t budget = 0;              // bytes that were allowed; 0: any number
  length_limit limit;
  std::uint64_t model = 0;  // fingerprint of the one it was made for
  std::uint64_t seal = 0;   // of what the planner derived: see seal.hpp

  bool rebuilds(position stage) const {
    for (const sweep& s : sweeps)
      if (s == sweep{sweep_kind::rebuild, stage}) return true;
    return false;
  }
  snapshots carry_snapshots() const { return {chunk_count(), choice.carry_interval}; }
  position chunk_count() const { return chunks.parts(); }
  position largest_chunk() const { return chunks.largest(); }
  position largest_head_chunk() const { return head_chunks.largest(); }
  position largest_context_chunk() const { return context_chunks.largest(); }
  std::size_t peak() const { return bytes.total(); }
};

// Head chunks inside every chunk, or over all rows.
inline edges head_chunk_edges(const edges& head_grains, const edges& chunks, position rows,
                              bool inside) {
  return inside ? chunk_edges(head_grains, rows, chunks) : chunk_edges(head_grains, rows);
}

// A plan for one scalar type.
template <class Scalar>
struct typed_plan : step_plan {};

}  // namespace streambp
