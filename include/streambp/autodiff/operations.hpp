// What a forward may do with rows beyond entry-wise arithmetic.
#pragma once

#include <cmath>
#include <vector>

#include "variable.hpp"

namespace streambp::autodiff {

// x wᵀ: x (rows, in), w a parameter (out, in).
inline variable matmul(variable x, variable w) {
  graph& g = variable::graph_of(w, x);
  if (!w.where() || w.where()->op != operation::parameter)
    throw shape_error("matmul: the second operand is a parameter of the layer, at[tag]");
  const position rows = w.where()->rows;
  const int slot = w.where()->slot;
  if (x.cols() != w.cols())
    throw shape_error(
        sentence("matmul: x has ", x.cols(), " features, w has ", rows, " rows of ", w.cols()));
  const int a = x.in(g);
  return {g, g.append({.op = operation::product, .a = a, .cols = rows, .slot = slot})};
}

// Of each row: (rows, 1).
inline variable row_sum(variable x) {
  graph& g = variable::graph_of(x);
  const int a = x.in(g);
  return {g, g.append({.op = operation::row_sum, .a = a, .cols = 1})};
}
inline variable row_mean(variable x) { return row_sum(x) * (1 / double(x.cols())); }
// Its gradient goes to the first of the largest entries.
inline variable row_max(variable x) {
  graph& g = variable::graph_of(x);
  const int a = x.in(g);
  return {g, g.append({.op = operation::row_max, .a = a, .cols = 1})};
}

// Of each row.
inline variable softmax(variable x) {
  const variable e = exp(x - detach(row_max(x)));
  return e / row_sum(e);
}
// log Σ exp x, of each row: (rows, 1).
inline variable log_sum_exp(variable x) {
  const variable top = detach(row_max(x));
  return top + log(row_sum(exp(x - top)));
}
// sqrt(mean x² + epsilon), of each row: (rows, 1). Infinite where its inverse would be, so that a
// row of zeros over it is one.
inline variable row_rms(variable x, double epsilon) {
  graph& g = variable::graph_of(x);
  const int a = x.in(g);
  return {g, g.append({.op = operation::row_rms, .a = a, .cols = 1, .constant = epsilon})};
}
// x / sqrt(mean x² + epsilon)
inline variable rms_normalise(variable x, double epsilon = 1e-6) {
  return x * (1 / row_rms(x, epsilon));
}
// x / sqrt(Σ x² + epsilon)
inline variable l2_normalise(variable x, double epsilon = 1e-12) {
  const double cols = double(x.cols());
  return rms_normalise(x, epsilon / cols) * (1 / std::sqrt(cols));
}
// (x - mean) / sqrt(variance + epsilon)
inline variable normalise(variable x, double epsilon = 1e-5) {
  const variable centred = x - row_mean(x);
  return centred * (1 / row_rms(centred, epsilon));
}

// Columns [first, first + count).
inline variable slice(variable x, position first, position count) {
  if (first < 0 || count < 1 || first + count > x.cols())
    throw shape_error(
        sentence("slice: columns [", first, ", ", first + count, ") of rows of ", x.cols()));
  graph& g = variable::graph_of(x);
  const int a = x.in(g);
  return {g, g.append({.op = operation::slice, .a = a, .cols = count, .first = first})};
}
// The columns of a, then those of b.
inline variable concatenate(variable a, variable b) {
  graph& g = variable::graph_of(a, b);
  const int an = a.in(g), bn = b.in(g);
  return {g,
          g.append({.op = operation::concatenate, .a = an, .b = bn, .cols = a.cols() + b.cols()})};
}

// base^(-2 i / width), radians per position of the pairs of a head.
inline std::vector<double> rotary_frequencies(double base, position width) {
  std::vector<double> all;
  for (position i = 0; i < width; i += 2) all.push_back(std::pow(base, -double(i) / double(width)));
  return all;
}
// Rotary positions of `heads` heads; `frequencies` belong to the layer.
inline variable rotate(variable x, position heads, const std::vector<double>& frequencies) {
  if (x.cols() != 2 * heads * position(frequencies.size()))
    throw shape_error(sentence("rotate: x has ", x.cols(), " features, ", heads, " heads of ",
                               frequencies.size(), " pairs have ",
                               2 * heads * position(frequencies.size()),
                               "; give a frequency for each pair of a head's features"));
  graph& g = variable::graph_of(x);
  const int a = x.in(g);
  return {g, g.append({.op = operation::rotate,
                       .a = a,
                       .cols = x.cols(),
                       .heads = {.heads = heads},
                       .frequencies = frequencies})};
}

// softmax(scale q kᵀ) v over the rows that the layer sees, head by head.
inline variable attend(variable q, const seen_rows& k, const seen_rows& v, attend_options options) {
  auto& o = options;
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  const auto divides = [](position n, position whole) { return n > 0 && whole % n == 0; };
  if (!divides(o.kv_heads, o.heads) || !divides(o.heads, q.cols()) ||
      !divides(o.kv_heads, k.cols) || !divides(o.kv_heads, v.cols) ||
      q.cols() / o.heads != k.cols / o.kv_heads)
    throw shape_error(sentence("attend: q, k and v of ", q.cols(), ", ", k.cols, " and ", v.cols,
                               " features with ", o.heads, " heads and ", o.kv_heads,
                               " key and value heads"));
  if (o.scale == 0) o.scale = 1 / std::sqrt(double(q.cols() / o.heads));
  if (o.window < 0 || !(o.softcap >= 0))
    throw shape_error(sentence("attend: a window of ", o.window, " and a softcap of ", o.softcap,
                               "; neither is negative"));
  graph& g = *k.of;
  const int a = q.in(g);
  return {g, g.append({.op = operation::attend,
                       .a = a,
                       .cols = o.heads * (v.cols / o.kv_heads),
                       .slot = k.slot,
                       .other_slot = v.slot,
                       .heads = o})};
}

// h[t] = f ∘ h[t-1] + (1 - f) ∘ c
inline variable scan(variable f, variable c, const carried_state& h) {
  if (f.cols() != h.cols || c.cols() != h.cols)
    throw shape_error(sentence("scan: f, c and the carry have ", f.cols(), ", ", c.cols(), " and ",
                               h.cols, " columns; all three are alike"));
  graph& g = *h.of;
  const int a = f.in(g), b = c.in(g);
  return {g, g.append({.op = operation::scan, .a = a, .b = b, .cols = h.cols, .slot = h.slot})};
}

}  // namespace streambp::autodiff
