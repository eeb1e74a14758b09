// An array in a device's memory between margins of poison, with a mirror that the host sees.
#pragma once

#include "../primitives/look.hpp"
#include "guarded.hpp"

namespace streambp::laws {

// Where the host reaches the device's memory the two are one.
template <class Device>
class guarded_array {
 public:
  using scalar = typename Device::scalar;

  template <class Value>
  explicit guarded_array(const std::vector<Value>& of) : mirror_(of), apart_(bytes()) {}
  explicit guarded_array(std::size_t n) : mirror_(n), apart_(bytes()) {}

  // The mirror, and the device's entries.
  std::span<scalar> host() { return mirror_.span(); }
  std::span<scalar> span() {
    if constexpr (Device::is_host) return host();
    return {start() + margin, host().size()};
  }
  void push(Device& on) {
    if constexpr (!Device::is_host) write_rows(on, all(), row());
  }
  void pull(Device& on) {
    if constexpr (!Device::is_host) read_rows(on, row(), all());
  }
  // What was pulled last.
  guarded_buffer<scalar>& pulled() { return mirror_; }

 private:
  static constexpr std::size_t margin = guarded_buffer<scalar>::margin;

  std::span<scalar> all() { return {host().data() - margin, host().size() + 2 * margin}; }
  std::size_t bytes() { return Device::is_host ? 0 : all().size_bytes(); }
  scalar* start() { return reinterpret_cast<scalar*>(apart_.data()); }
  view<scalar> row() { return {start(), 1, position(all().size())}; }

  guarded_buffer<scalar> mirror_;
  typename Device::memory apart_;
};

}  // namespace streambp::laws
