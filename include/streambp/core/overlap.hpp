// Whether two arrays of a caller share memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "view.hpp"

namespace streambp {

// From the first byte of an array to behind its last; what lies between rows belongs to it.
struct byte_range {
  const std::byte* first = nullptr;
  const std::byte* last = nullptr;
};

template <class T>
byte_range bytes_of(std::span<T> array) {
  const auto* first = reinterpret_cast<const std::byte*>(array.data());
  return {first, first + array.size_bytes()};
}
template <class T>
byte_range bytes_of(view<T> rows) {
  const auto* first = reinterpret_cast<const std::byte*>(rows.data);
  const position entries =
      rows.rows > 0 && rows.cols > 0 ? (rows.rows - 1) * rows.stride + rows.cols : 0;
  return {first, first + std::size_t(entries) * sizeof(T)};
}

inline bool overlap(byte_range a, byte_range b) {
  const std::less<const std::byte*> before;
  return a.first != a.last && b.first != b.last && before(a.first, b.last) &&
         before(b.first, a.last);
}

}  // namespace streambp
