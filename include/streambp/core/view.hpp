// A matrix that lives elsewhere: pointer and shape, row-major, never owning.
#pragma once

#include <type_traits>

#include "position.hpp"

namespace streambp {

// `rows` rows of `cols` entries; row i starts at data + i * stride. A view without data has a shape
// only: the planner sends such views through the layers to count what they would do.
template <class Scalar>
struct view {
  Scalar* data = nullptr;
  position rows = 0;
  position cols = 0;
  position stride = 0;

  constexpr view() = default;
  constexpr view(Scalar* data, position rows, position cols) : view(data, rows, cols, cols) {}
  constexpr view(Scalar* data, position rows, position cols, position stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}

  constexpr operator view<const Scalar>() const requires(!std::is_const_v<Scalar>) {
    return {data, rows, cols, stride};
  }

  constexpr Scalar* row(position i) const { return data + i * stride; }
  constexpr Scalar& operator()(position i, position j) const { return data[i * stride + j]; }

  constexpr view middle_rows(position first, position count) const {
    return {data ? data + first * stride : nullptr, count, cols, stride};
  }
  constexpr view rows_in(row_range r) const { return middle_rows(r.first, r.rows()); }
  constexpr view middle_cols(position first, position count) const {
    return {data ? data + first : nullptr, rows, count, stride};
  }
};

}  // namespace streambp
