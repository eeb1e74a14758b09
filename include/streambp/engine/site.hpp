// What a layer sees of itself at one chunk: its slots, the pieces of samples there, the device.
#pragma once

#include <cstdint>
#include <span>

#include "../core/packed.hpp"
#include "../primitives/carry_rows.hpp"
#include "../primitives/memory_block.hpp"
#include "cell.hpp"

namespace streambp {

// One chunk of one step.
struct chunk_place {
  position index = 0;
  row_range rows{};  // on the packed axis
  const packed* samples = nullptr;
  const packed* context = nullptr;  // the other stream, if there is one
  snapshots snapshot{};
  position prefix = 0;
  position tile = 64;                  // rows; chunk edges never cut one
  std::span<const position> grains{};  // edges on the packed axis, from rows.first to rows.last
  std::span<const std::uint64_t> sample_ids{};  // empty: the segment's number
  std::uint64_t seed = 0;
  std::uint64_t step = 0;

  piece_list pieces() const { return {*samples, rows, prefix}; }
};

template <class Device, class Layer>
struct site {
  using scalar = typename Device::scalar;
  using traits = layer_traits<Layer>;
  using slots = typename traits::slot_types;

  static constexpr bool host_only = [] {
    if constexpr (requires { traits::host_only; })
      return bool(traits::host_only);
    else
      return !traits::counts_flops;
  }();
  static_assert(
      Device::is_host || !host_only,
      "streambp: this layer's own loops touch rows, and the host does not reach the memory of this "
      "device; write it in primitives and say counts_flops = true, or run it on the CPU");

  Device& on;
  const chunk_place& chunk;
  slot_cell<scalar>* cells;    // of the layer, as its slots
  std::uint64_t instance = 0;  // number of the layer in the model: keys randomness
  bool wants_output = true;    // false: only what backward needs must be computed
  bool keeps_outputs = false;  // keepable slots hold all tokens
  bool restored = false;       // keepable slots hold this chunk's rows already
  bool saves = false;          // backward follows
  bool tallies = false;        // the first forward: tallies are added up now and never again
  bool remembers = false;      // the call writes memory

  static constexpr int memories =
      traits::count::of(slot_kind::memory) + traits::count::of(slot_kind::context);
  mutable open_loans<scalar, std::size_t(2 * memories)> loans{};

  piece_list pieces() const { return chunk.pieces(); }
  std::span<const position> grains() const { return chunk.grains; }
  position rows() const { return chunk.rows.rows(); }

  // parameter: (rows, cols), to be read. memory: all rows that exist, prefix first; see pieces()
  // for those seen. total: a row a segment. context: all rows of the other stream. tally: one row.
  // saved, keepable, scratch: the chunk's rows. workspace: a row a thread.
  template <class Tag>
  auto operator[](Tag) const {
    constexpr int i = index<Tag>();
    constexpr slot_kind kind = std::tuple_element_t<i, slots>::kind;
    static_assert(
        kind != slot_kind::carry,
        "a carry's states are at.states(tag): before(piece), kept(piece), handed_on(piece)");
    const slot_cell<scalar>& cell = cells[i];
    if constexpr (kind == slot_kind::keepable) {
      if (keeps_outputs) return cell.kept.rows_in(chunk.rows);
    }
    if constexpr (kind == slot_kind::parameter || kind == slot_kind::shared)
      return cell.given;
    else if constexpr (kind == slot_kind::saved || kind == slot_kind::keepable ||
                       kind == slot_kind::scratch)
      return cell.value.middle_rows(0, rows());
    else if constexpr (kind == slot_kind::memory || kind == slot_kind::context)
      return ask(i, false, {0, cell.value.rows},
                 remembers ? lent_for::changing : lent_for::reading);
    else
      return cell.value;
  }
  // The gradient to add to, of a parameter or of all memory rows. No rows: frozen.
  template <class Tag>
  view<scalar> d(Tag) const {
    constexpr int i = index<Tag>();
    constexpr slot_kind kind = std::tuple_element_t<i, slots>::kind;
    if constexpr (kind == slot_kind::memory || kind == slot_kind::context)
      return ask(i, true, {0, cells[i].gradient.rows}, lent_for::changing);
    else
      return cells[i].gradient;
  }
  template <class Tag>
  bool trains(Tag) const {
    return cells[index<Tag>()].gradient.rows > 0;
  }

  // The chunk's own rows of a memory, or of its gradient: all that remember and release touch.
  template <class Tag>
  view<scalar> own(Tag) const {
    return ask(index<Tag>(), false, own_rows(),
               remembers ? lent_for::assigning : lent_for::reading);
  }
  template <class Tag>
  view<scalar> d_own(Tag) const {
    return ask(index<Tag>(), true, own_rows(), lent_for::changing);
  }
  view<scalar> own(view<scalar> memory) const { return memory.rows_in(own_rows()); }

  // Calls f(memory_block) for the rows of keys and values that attention of the pieces reads, as
  // many at a time as are lent. What f was given is given back when it returns.
  template <class K, class V, class F>
  void walk(const attention_shape& shape, const piece_list& pieces, K, V, const F& f) const {
    walk_slots(shape, pieces, index<K>(), index<V>(), f);
  }
  // The same: f(memory_block, dk, dv), with the block's rows of both gradients to add to.
  template <class K, class V, class F>
  void walk_back(const attention_shape& shape, const piece_list& pieces, K, V, const F& f) const {
    walk_slots_back(shape, pieces, index<K>(), index<V>(), f);
  }
  // Of slots by their numbers.
  template <class F>
  void walk_slots(const attention_shape& shape, const piece_list& pieces, int k, int v,
                  const F& f) const {
    const position memory = cells[k].value.rows;
    const position at_a_time = cells[k].store ? cells[k].store->rows_at_a_time() : 0;
    walk_memory(shape, pieces, memory, at_a_time, [&](row_range rows, bool first) {
      borrow_both(k, v, false, lent_rows(shape, rows, memory),
                  [&](view<scalar> keys, view<scalar> values) {
                    f(memory_block<scalar>{rows, keys, values, first});
                  });
    });
  }
  template <class F>
  void walk_slots_back(const attention_shape& shape, const piece_list& pieces, int k, int v,
                       const F& f) const {
    walk_slots(shape, pieces, k, v, [&](const memory_block<scalar>& block) {
      borrow_both(k, v, true, block.rows,
                  [&](view<scalar> dk, view<scalar> dv) { f(block, dk, dv); });
    });
  }

  // Where a carry's states come from and go to, (1, rows * cols) each.
  template <class Tag>
  carry_rows<scalar> states(Tag) const {
    constexpr int i = index<Tag>();
    static_assert(std::tuple_element_t<i, slots>::kind == slot_kind::carry,
                  "at.states(tag) is for carries; any other slot is at[tag]");
    const auto row = [&](view<scalar> of, position r) { return of.middle_rows(r, 1); };
    const position c = chunk.index;
    const slot_cell<scalar>& cell = cells[i];
    return {chunk.samples,
            chunk.rows,
            row(cell.value, chunk.snapshot.row(c)),
            row(cell.gradient, c % 2),
            row(cell.value, chunk.snapshot.row(c + 1)),
            row(cell.gradient, (c + 1) % 2),
            cell.initial,
            cell.d_initial,
            cell.ends,
            cell.d_ends};
  }

  // The chunk's own rows of a context memory, or of its gradient, in remember_context and
  // release_context.
  template <class Tag>
  view<scalar> own_context(Tag) const {
    return ask(index<Tag>(), false, chunk.rows,
               remembers ? lent_for::assigning : lent_for::reading);
  }
  template <class Tag>
  view<scalar> d_own_context(Tag) const {
    return ask(index<Tag>(), true, chunk.rows, lent_for::changing);
  }
  view<scalar> own_context(view<scalar> memory) const { return memory.rows_in(chunk.rows); }
  // The chunk's pieces as readers of the other stream: segment s sees its segment s.
  piece_list context_pieces() const { return chunk.pieces().seeing(*chunk.context); }

 private:
  row_range own_rows() const {
    return {chunk.prefix + chunk.rows.first, chunk.prefix + chunk.rows.last};
  }
  loan<scalar> lend(int i, bool gradient, row_range rows, lent_for use) const {
    return {cells[i].store, gradient ? cells[i].gradient : cells[i].value, rows, use};
  }
  // What the call has been lent of these rows; null without a store, too.
  const loan<scalar>* held(int i, bool gradient, row_range rows) const {
    return cells[i].store ? loans.find(2 * i + gradient, rows, traits::name()) : nullptr;
  }
  // Until the call is done.
  view<scalar> ask(int i, bool gradient, row_range rows, lent_for use) const {
    if (!cells[i].store) return lend(i, gradient, rows, use).rows();
    if (const auto* there = held(i, gradient, rows)) return there->rows_in(rows);
    return loans.add(2 * i + gradient, lend(i, gradient, rows, use));
  }
  // For the time of f. Keys and values may be one memory, and may have been asked for as a whole.
  template <class F>
  void borrow_both(int k, int v, bool gradient, row_range rows, const F& f) const {
    const auto borrow = [&](int i) {
      const auto* there = held(i, gradient, rows);
      return there ? loan<scalar>(nullptr, there->rows_in(rows), {0, rows.rows()}, {})
                   : lend(i, gradient, rows, gradient ? lent_for::changing : lent_for::reading);
    };
    const loan<scalar> keys = borrow(k), values = k == v ? loan<scalar>() : borrow(v);
    f(keys.rows(), k == v ? keys.rows() : values.rows());
  }

  template <class Tag>
  static constexpr int index() {
    constexpr int i = traits::count::template index<Tag>();
    static_assert(i >= 0, "no slot has this tag: add it to the layer's slots()");
    return i;
  }
};

}  // namespace streambp
