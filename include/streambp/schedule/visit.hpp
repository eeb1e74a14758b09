// What runs at a chunk, and why: the engine runs these, the planner adds up what they cost.
#pragma once

#include "snapshots.hpp"
#include "sweep.hpp"

namespace streambp {

// Why a run of sections is visited. Every flag of a visit derives from this one value.
enum class purpose : unsigned char {
  // At a chunk, forward:
  forward,         // the first time: results, memories, carries, tallies
  forward_kept,    // so, and what backward reads: the chunk will not be replayed
  first_state,     // the first time, for memories, carries and tallies alone
  remember,        // the memory of a read that sees all, again
  rebuild,         // memories and carries again
  refill,          // carries again: only states at the edges of intervals were kept
  replay,          // again, with what backward reads
  replay_rebuild,  // so, with memories and carries: the last chunk, which a rebuild leaves out
  // At a chunk, with the gradient of its rows:
  head,
  backward,
  // At a chunk whose head is only read:
  value,
  // Once a sweep, before its first chunk or after its last:
  open,     // prefix rows and the other stream to memories, totals to 0
  clear,    // gradients of memories, carries and totals to 0
  close,    // gradients of prefix rows and of the other stream to the caller
  announce  // gradients of parameters are final
};

enum class moment : unsigned char { before, at_chunk, after };

constexpr moment moment_of(purpose p) {
  return p < purpose::open ? moment::at_chunk : p < purpose::close ? moment::before : moment::after;
}
constexpr bool runs_forward(purpose p) { return p < purpose::head; }

// One section at one chunk.
struct visit {
  purpose why = purpose::forward;
  bool result = true;  // somebody behind the section reads what it gives
  bool keeps_outputs = false;

  constexpr bool first() const { return why <= purpose::first_state; }
  constexpr bool remembers() const {
    return first() || why == purpose::remember || why == purpose::rebuild ||
           why == purpose::replay_rebuild;
  }
  constexpr bool saves() const {
    return why == purpose::forward_kept || why == purpose::replay ||
           why == purpose::replay_rebuild || why == purpose::backward;
  }
  // Keepable rows hold what the first forward put there.
  constexpr bool restored() const { return keeps_outputs && !first(); }
  // Runs only what feeds a memory or a carry.
  constexpr bool state_only() const { return !result && !saves(); }
};

// A run of sections at a range of chunks, for one purpose.
struct pass {
  purpose why{};
  position first = 0;  // sections [first, last)
  position last = 0;
  row_range chunks{};     // numbers of chunks
  bool result = true;     // somebody behind the last section reads what it gives
  position interval = 0;  // of so many chunks all but the last, ascending, when the sweep reaches
                          // the last; 0: each when the sweep reaches it

  constexpr bool comes_at(position chunk) const {
    return chunks.first <= chunk && chunk < chunks.last &&
           (interval == 0 || (chunk + 1) % interval == 0);
  }
  // The chunks that run when it comes.
  constexpr row_range run_at(position chunk) const {
    return interval == 0 ? row_range{chunk, chunk + 1} : row_range{chunk + 1 - interval, chunk};
  }
  constexpr visit at(position section, const stage_facts& s) const {
    return {why, section + 1 < last || result, s.keeps_outputs(section)};
  }
};

constexpr bool descends(sweep_kind kind) {
  return kind == sweep_kind::descend || kind == sweep_kind::head || kind == sweep_kind::summarise;
}
// The chunks that a sweep over the trunk visits.
constexpr row_range chunks_of(sweep_kind kind, position chunks) {
  return {0, chunks - (kind == sweep_kind::rebuild)};
}

// Calls f(pass) for what a sweep over the trunk does, in the order in which a chunk sees it.
template <class F>
constexpr void for_each_pass(sweep_kind kind, const stage_facts& s, const snapshots& states,
                             F&& f) {
  const position n = states.chunks, first = s.plan.first, last = s.plan.last;
  const row_range all{0, n}, but_last{0, n - 1}, last_one{n - 1, n};
  switch (kind) {
    case sweep_kind::forward:
    case sweep_kind::forward_value: {
      const bool kept = kind == sweep_kind::forward && s.plan.keeps_chunk;
      f(pass{purpose::open, first, last});
      f(pass{purpose::forward, first, last, kept ? but_last : all});
      if (kept) f(pass{purpose::forward_kept, first, last, last_one});
      if (kind == sweep_kind::forward_value) f(pass{purpose::value, first, last, all});
      return;
    }
    case sweep_kind::forward_state:
      f(pass{purpose::open, first, last});
      f(pass{purpose::first_state, first, s.last_first, all, false});
      return;
    case sweep_kind::remember:
      f(pass{purpose::open, first - 1, first});
      f(pass{purpose::remember, first - 1, first, all});
      return;
    case sweep_kind::rebuild:
      f(pass{purpose::open, first, s.own_last});
      f(pass{purpose::rebuild, first, s.last_state, but_last, false});
      return;
    case sweep_kind::descend: {
      if (s.gave_up_state() && !s.rebuilds(n)) f(pass{purpose::open, first, s.own_last});
      f(pass{purpose::clear, first - s.begins_with_read, s.own_last});
      if (s.carries && states.two_levels())
        f(pass{purpose::refill,
               first,
               s.last_state,
               {0, (n - 1) / states.interval * states.interval},
               false,
               states.interval});
      f(pass{purpose::replay, first, s.own_last, but_last, s.fuses_head});
      if (!s.plan.keeps_chunk)
        f(pass{s.gave_up_state() ? purpose::replay_rebuild : purpose::replay, first, s.own_last,
               last_one, s.fuses_head});
      if (s.own_last < last)
        f(pass{purpose::replay, s.own_last, last, s.plan.keeps_chunk ? but_last : all, false});
      if (s.fuses_head) f(pass{purpose::head, first, last, all});
      f(pass{purpose::backward, s.lowest, last, all});
      f(pass{purpose::close, first, last});
      f(pass{purpose::announce, s.lowest, last});
      return;
    }
    default:
      return;  // of the head or of sums: they visit no section
  }
}

}  // namespace streambp
