// What a layer sees of itself at one chunk: its slots, the pieces of samples there, the device.
#pragma once

#include <cstdint>
#include <span>

#include "../core/packed.hpp"
#include "cell.hpp"

namespace streambp {

// One chunk of one step.
struct chunk_place {
  position index = 0;
  row_range rows{};                   // on the packed axis
  const packed* samples = nullptr;
  position prefix = 0;
  position tile = 64;                 // rows; chunk edges never cut one
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
  using cell_type = operator_cell<scalar, slots>;

  Device& on;
  const chunk_place& chunk;
  cell_type& cell;
  std::uint64_t instance = 0;   // number of the layer in the model: keys randomness
  bool wants_output = true;     // false: only what backward needs must be computed
  bool keeps_outputs = false;   // keepable slots hold all tokens
  bool restored = false;        // keepable slots hold this chunk's rows already

  piece_list pieces() const { return chunk.pieces(); }
  std::span<const position> grains() const { return chunk.grains; }
  position rows() const { return chunk.rows.rows(); }

  // parameter: (rows, cols). memory: all rows that exist, prefix first; see pieces() for those seen.
  // saved, keepable, scratch: the chunk's rows. workspace: a row a thread.
  template <class Tag>
  view<scalar> operator[](Tag) const {
    constexpr int i = index<Tag>();
    constexpr slot_kind kind = std::tuple_element_t<i, slots>::kind;
    static_assert(kind != slot_kind::carry, "a carry is read by at.in(tag) and written by at.out(tag)");
    if constexpr (kind == slot_kind::keepable) {
      if (keeps_outputs) return cell.kept[i].rows_in(chunk.rows);
    }
    if constexpr (kind == slot_kind::saved || kind == slot_kind::keepable ||
                  kind == slot_kind::scratch)
      return cell.value[i].middle_rows(0, rows());
    else
      return cell.value[i];
  }
  // The gradient to add to, of a parameter or of all memory rows. No rows: frozen.
  template <class Tag>
  view<scalar> d(Tag) const {
    return cell.gradient[index<Tag>()];
  }
  template <class Tag>
  bool trains(Tag tag) const {
    return d(tag).rows > 0;
  }

  // The chunk's own rows of a memory, or of its gradient.
  view<scalar> own(view<scalar> memory) const {
    return memory.rows_in({chunk.prefix + chunk.rows.first, chunk.prefix + chunk.rows.last});
  }

  // A carry's state before the chunk's first row and after its last, as one row; `in` counts when
  // the first piece starts past position 0.
  template <class Tag>
  view<scalar> in(Tag) const {
    return state(cell.value[index<Tag>()], chunk.index);
  }
  template <class Tag>
  view<scalar> out(Tag) const {
    return state(cell.value[index<Tag>()], chunk.index + 1);
  }
  // The gradient of out (read) and of in (assign).
  template <class Tag>
  view<scalar> d_out(Tag) const {
    return state(cell.gradient[index<Tag>()], (chunk.index + 1) % 2);
  }
  template <class Tag>
  view<scalar> d_in(Tag) const {
    return state(cell.gradient[index<Tag>()], chunk.index % 2);
  }
  // The state that every sample starts from, and its gradient to add to; no data: zero, not wanted.
  template <class Tag>
  view<const scalar> initial(Tag) const {
    return cell.initial[index<Tag>()];
  }
  template <class Tag>
  view<scalar> d_initial(Tag) const {
    return cell.d_initial[index<Tag>()];
  }

 private:
  template <class Tag>
  static constexpr int index() {
    constexpr int i = traits::count::template index<Tag>();
    static_assert(i >= 0, "no slot has this tag: add it to the layer's slots()");
    return i;
  }
  static view<scalar> state(view<scalar> states, position i) {
    return states.middle_rows(i, 1);
  }
};

}  // namespace streambp
