// What a primitive asks of its operands: checked once a call, on rows without data, too.
#pragma once

#include <span>

#include "../core/error.hpp"
#include "../core/view.hpp"

namespace streambp {

// A side of an operand, by the name that the primitive's formula has for it.
struct side {
  const char* name;
  position size;
};

namespace detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_shape(const char* primitive,
                                                                const char* operand, position rows,
                                                                position cols, side wanted_rows,
                                                                side wanted_cols,
                                                                const char* wanted = "wanted") {
  throw shape_error(sentence(primitive, ": ", operand, " is ", rows, " x ", cols, ", ", wanted,
                             " (", wanted_rows.name, " = ", wanted_rows.size, ", ",
                             wanted_cols.name, " = ", wanted_cols.size, ")"));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_frozen(const char* primitive,
                                                                 const char* operand) {
  throw shape_error(sentence(primitive, ": ", operand,
                             " has no rows, as the gradient of a frozen parameter has none; ask "
                             "at.trains(tag) first"));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_count(const char* primitive,
                                                                const char* operand,
                                                                std::size_t entries, side wanted) {
  throw shape_error(sentence(primitive, ": ", operand, " has ", entries, " entries, wanted (",
                             wanted.name, " = ", wanted.size, ")"));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_rows(const char* primitive,
                                                               const char* operand, position there,
                                                               row_range asked) {
  throw shape_error(sentence(primitive, ": rows [", asked.first, ", ", asked.last, ") of ", operand,
                             ", which has ", there));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_grains(const char* primitive,
                                                                 std::size_t edges, position grains,
                                                                 position rows) {
  if (edges == 0)
    throw shape_error(
        sentence(primitive, ": grains has no edge; give at.grains() of the rows' chunk"));
  throw shape_error(sentence(primitive, ": grains cover ", grains, " rows, the operands have ",
                             rows, "; give at.grains() of the rows' chunk"));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_pieces(const char* primitive,
                                                                 const char* operand,
                                                                 position pieces, position rows) {
  throw shape_error(sentence(primitive, ": the pieces have ", pieces, " rows, ", operand, " has ",
                             rows, "; give at.pieces() of the rows' chunk"));
}

}  // namespace detail

// Throws shape_error: "project: w is 16 x 8, wanted (out = 8, in = 16)".
template <class S>
void expect_shape(const char* primitive, const char* operand, const view<S>& given, side rows,
                  side cols) {
  if (given.rows != rows.size || given.cols != cols.size) [[unlikely]]
    detail::refuse_shape(primitive, operand, given.rows, given.cols, rows, cols);
}
// The same of a parameter's gradient, which has no rows where the parameter is frozen.
template <class S>
void expect_gradient(const char* primitive, const char* operand, const view<S>& given, side rows,
                     side cols) {
  if (given.rows == 0 && rows.size > 0) [[unlikely]]
    detail::refuse_frozen(primitive, operand);
  expect_shape(primitive, operand, given, rows, cols);
}
// The same of one that may be left out: without rows it is.
template <class S>
void expect_shape_if_any(const char* primitive, const char* operand, const view<S>& given,
                         side rows, side cols) {
  if (given.rows != 0) expect_shape(primitive, operand, given, rows, cols);
}
// Space: more is no harm.
template <class S>
void expect_at_least(const char* primitive, const char* operand, const view<S>& given, side rows,
                     side cols) {
  if (given.rows < rows.size || given.cols < cols.size) [[unlikely]]
    detail::refuse_shape(primitive, operand, given.rows, given.cols, rows, cols, "wanted at least");
}
// The same rows and columns as `like`.
template <class S, class T>
void expect_alike(const char* primitive, const char* operand, const view<S>& given,
                  const view<T>& like) {
  expect_shape(primitive, operand, given, {"rows", like.rows}, {"columns", like.cols});
}
template <class S, class T>
void expect_alike_if_any(const char* primitive, const char* operand, const view<S>& given,
                         const view<T>& like) {
  if (given.rows != 0) expect_alike(primitive, operand, given, like);
}
// A list of so many entries.
inline void expect_count(const char* primitive, const char* operand, std::size_t entries,
                         side wanted) {
  if (position(entries) != wanted.size) [[unlikely]]
    detail::refuse_count(primitive, operand, entries, wanted);
}
// Rows that are there.
template <class S>
void expect_rows_in(const char* primitive, const char* operand, const view<S>& given,
                    row_range asked) {
  if (asked.first < 0 || asked.last > given.rows) [[unlikely]]
    detail::refuse_rows(primitive, operand, given.rows, asked);
}

// Edges of grains, on whichever axis, that cover `rows` rows.
inline void expect_grains(const char* primitive, std::span<const position> grains, position rows) {
  if (grains.empty() || grains.back() - grains.front() != rows) [[unlikely]]
    detail::refuse_grains(primitive, grains.size(),
                          grains.empty() ? 0 : grains.back() - grains.front(), rows);
}
template <class Pieces, class S>
void expect_pieces(const char* primitive, const Pieces& pieces, const char* operand,
                   const view<S>& given) {
  if (pieces.rows().rows() != given.rows) [[unlikely]]
    detail::refuse_pieces(primitive, operand, pieces.rows().rows(), given.rows);
}

}  // namespace streambp
