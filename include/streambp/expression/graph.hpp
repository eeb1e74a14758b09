// What a forward does, as a list of operations on rows: written down once by running the forward on
// shapes, the same for every chunk.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "../core/error.hpp"
#include "../core/position.hpp"
#include "tangent.hpp"

namespace streambp::autodiff {

enum class operation : unsigned char {
  // given
  input,
  parameter,
  constant,
  before,
  // entry by entry
  unary,
  power,
  add,
  subtract,
  multiply,
  divide,
  max,
  min,
  select,
  detach,
  // some columns of other rows
  slice,
  // rows of their own
  output,
  product,
  row_sum,
  row_max,
  row_rms,
  concatenate,
  rotate,
  attend,
  scan,
  recur
};

constexpr bool entry_wise(operation op) {
  return operation::unary <= op && op <= operation::detach;
}

// How attend reads the rows that it sees; widths come from its operands.
struct attend_options {
  position heads = 1;
  position kv_heads = 0;  // heads
  double scale = 0;       // 1 / sqrt(width of a head)
  double softcap = 0;
  position window = 0;
};

struct node {
  operation op = operation::input;
  autodiff::unary function{};
  int a = -1, b = -1, c = -1;  // operands
  position rows = 0;           // of a parameter
  position cols = 0;
  double constant = 0;     // exponent of a power, epsilon of row_rms
  int slot = -1;           // of a parameter, product, scan, recur; k of attend
  int other_slot = -1;     // v of attend
  position first = 0;      // column of a slice
  int region = 0;          // recurrence that it belongs to; 0: none
  attend_options heads{};  // of attend and rotate
  std::span<const double> frequencies{};
};

struct graph {
  static constexpr int most = 96;
  std::array<node, most> nodes{};
  int size = 0;
  int regions = 0;
  int open_region = 0;  // the recurrence whose step is being written down

  const node& operator[](int n) const { return nodes[std::size_t(n)]; }

  // Throws shape_error when a forward has more operations than that.
  int append(node n) {
    if (size == most)
      throw shape_error(sentence("autodiff: a forward of more than ", most,
                                 " operations; make it two layers, or write its backward by hand"));
    n.region = open_region;
    nodes[std::size_t(size)] = n;
    return size++;
  }

  // A parameter is one node however often it is named, and belongs to no recurrence.
  int parameter(int slot, position rows, position cols) {
    for (int n = 0; n < size; ++n)
      if (nodes[std::size_t(n)].op == operation::parameter && nodes[std::size_t(n)].slot == slot)
        return n;
    const int n = append({.op = operation::parameter, .rows = rows, .cols = cols, .slot = slot});
    nodes[std::size_t(n)].region = 0;
    return n;
  }
};

}  // namespace streambp::autodiff
