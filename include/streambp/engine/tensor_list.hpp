// Where a model's parameters or their gradients stand: in one buffer, or each in one of its own.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "../core/overlap.hpp"
#include "../schedule/parameters.hpp"

namespace streambp {

// Made from a buffer, whose entries stand as a parameter_table says, or from a list of one view an
// entry of the table, (rows, cols) each and as far apart as they like. What is frozen has no
// gradient: its view there may be empty. Points to what it was made from.
template <class Scalar>
class tensor_list {
  using value = std::remove_const_t<Scalar>;

 public:
  tensor_list() = default;
  template <class Buffer>
  requires std::convertible_to<Buffer, std::span<Scalar>> tensor_list(Buffer&& buffer)
      : buffer_(std::forward<Buffer>(buffer)) {}
  // Parameters are only read: views that could be written to will do.
  template <class List>
  requires std::convertible_to<List, std::span<const view<value>>> tensor_list(List&& list)
      : written_(std::forward<List>(list)), listed_(true) {}
  template <class List>
  requires(std::convertible_to<List, std::span<const view<const value>>>&& std::is_const_v<Scalar>)
      tensor_list(List&& list)
      : read_(std::forward<List>(list)), listed_(true) {}

  bool empty() const { return listed_ ? views() == 0 : buffer_.empty(); }
  // A list of views, not a buffer.
  bool listed() const { return listed_; }
  std::span<Scalar> buffer() const { return buffer_; }
  std::size_t views() const { return written_.size() + read_.size(); }

  // Of entry `number` of the table, which stands at `offset` of a buffer.
  view<Scalar> at(std::size_t number, position offset, const parameter_info& entry) const {
    if (!listed_) return {buffer_.data() + offset, entry.rows, entry.cols};
    return listed_view(number);
  }
  // Calls f(bytes) for each run of memory.
  template <class F>
  void for_each_range(const F& f) const {
    if (!listed_) return f(bytes_of(buffer_));
    for (std::size_t k = 0; k < views(); ++k) f(bytes_of(listed_view(k)));
  }

 private:
  view<Scalar> listed_view(std::size_t number) const {
    if constexpr (std::is_const_v<Scalar>)
      if (!read_.empty()) return read_[number];
    return written_[number];
  }

  std::span<Scalar> buffer_{};
  std::span<const view<value>> written_{};
  std::span<const view<const value>> read_{};
  bool listed_ = false;
};

}  // namespace streambp
