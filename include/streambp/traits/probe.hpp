// What a layer sees of itself, as declarations alone: asks whether a layer's functions can be
// called before an engine exists.
#pragma once

#include <cstdint>
#include <span>

#include "../core/position.hpp"
#include "../core/view.hpp"

namespace streambp {

class piece_list;
struct attention_shape;
template <class Scalar>
struct carry_rows;

// Does nothing, so it can stand for every device.
struct probe_device {
  using scalar = float;
  static constexpr bool is_host = true;
};

struct probe_chunk {
  row_range rows{};
  position tile = 64;
  std::span<const std::uint64_t> sample_ids{};
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
};

// Has the members of site (engine/site.hpp), none of them defined.
struct site_probe {
  using scalar = probe_device::scalar;

  probe_device& on;
  const probe_chunk& chunk;
  std::uint64_t instance;
  bool wants_output;
  bool keeps_outputs;
  bool restored;
  bool saves;
  bool tallies;

  piece_list pieces() const;
  std::span<const position> grains() const;
  position rows() const;

  template <class Tag>
  view<scalar> operator[](Tag) const;
  template <class Tag>
  view<scalar> d(Tag) const;
  template <class Tag>
  bool trains(Tag) const;
  template <class Tag>
  view<scalar> own(Tag) const;
  template <class Tag>
  view<scalar> d_own(Tag) const;
  view<scalar> own(view<scalar> memory) const;
  template <class K, class V, class F>
  void walk(const attention_shape&, const piece_list&, K, V, const F&) const;
  template <class K, class V, class F>
  void walk_back(const attention_shape&, const piece_list&, K, V, const F&) const;

  template <class Tag>
  carry_rows<scalar> states(Tag) const;
  template <class Tag>
  view<scalar> own_context(Tag) const;
  template <class Tag>
  view<scalar> d_own_context(Tag) const;
  view<scalar> own_context(view<scalar> memory) const;
  piece_list context_pieces() const;
};

}  // namespace streambp
