// What a device is: it runs the bodies of primitives, counts their FLOPs, and owns memory.
#pragma once

#include <concepts>
#include <cstddef>

#include "../core/big_count.hpp"
#include "../core/view.hpp"

namespace streambp::primitives {

// Counts the FLOPs of primitives: what every device derives from, so that a call with it finds the
// primitives wherever it stands.
template <class Scalar>
class counting {
 public:
  using scalar = Scalar;
  // Whether a layer's own loops, on the host, may touch the device's rows.
  static constexpr bool is_host = true;

  void count(big_count flops) { flops_ += flops; }
  big_count flops() const { return flops_; }
  void reset_flops(big_count flops = 0) { flops_ = flops; }

 private:
  big_count flops_;
};

// What primitives are called on. A primitive is a short function here: it checks shapes, counts its
// FLOPs, and calls the function of its name, the body, that the device's room has for what enter
// gives. That points to what computes (for the CPU its workers) and lives until the body is done;
// it is null in a device made without arguments, which only counts: there rows have a shape and no
// data.
template <class D>
concept device = requires(D& on, big_count flops) {
  typename D::scalar;
  { D::is_host } -> std::convertible_to<bool>;
  { on.counts_only() } -> std::same_as<bool>;
  { on.flops() } -> std::same_as<big_count>;
  on.count(flops);
  on.reset_flops(flops);
  on.enter("name");
};

// What an engine needs of it beside. Made without arguments it counts only. `memory` is a block of
// bytes, owned, that primitives reach: made of a size, with data() and size().
template <class D>
concept computing_device = device<D> && std::default_initializable<D> &&
    std::constructible_from<D, int> && std::constructible_from<typename D::memory, std::size_t> &&
    requires(D& on, std::byte* lent, position longest) {
  // Bytes that the device works in while it runs, for so many threads and a model whose parameters
  // have no side longer than that; lent for its lifetime.
  { D::packing_bytes(1, longest) } -> std::convertible_to<std::size_t>;
  on.lend(lent, longest);
};

// Rows of a workspace that a primitive may use: one a thread.
template <device D>
position threads_of(const D& on) {
  if constexpr (requires { on.threads(); })
    return on.threads();
  else
    return 1;
}

template <class D>
using scalar_of = typename D::scalar;
// Rows that a primitive reads, and rows that it writes: (rows, columns), by reference.
template <class D>
using given = view<const typename D::scalar>;
template <class D>
using written = view<typename D::scalar>;

}  // namespace streambp::primitives
