// y = gain ∘ x ∘ x, right and with one fault at a time.
#pragma once

#include <array>
#include <span>
#include <streambp/core/packed.hpp>
#include <streambp/model/compose.hpp>
#include <streambp/split/slot.hpp>
#include <vector>

namespace streambp {

enum class row_fault : unsigned char {
  none,
  wrong_sign,        // in dx
  assigns,           // the parameter gradient, at the chunk where a step's backward begins
  sums_by_chunk,     // the parameter gradient's sum over tokens
  depends_on_chunk,  // the row's number in it
  depends_on_axis,   // the row's number among all samples' rows
  mixes_rows,        // two neighbours of a segment, in and out
  counts_calls,      // and lets the count into y
  allocates,
  sinks_deep,  // into the stack, with every row of the chunk
  assigns_dx,
  ignores_frozen,         // adds to a gradient that is not there
  overwrites_dy,          // once it has been used
  overruns_slot,          // by a row, which a larger chunk has
  nothing_at_first,       // 0 / 0 for rows without one before
  frozen_stops_gradient,  // no dx where no parameter is trained
  single_only,            // dx is wrong by a thousandth in fp32
  float_constant,         // dx is rounded as by a constant of backward that is a float
  knows_length,           // of the sample
  divides_by_x,           // in backward: 0 / 0 at zeros
  ignores_seed,           // and follows the step
  sums_in_tasks,          // the parameter gradient, in a loop that threads share
  shares_a_row,           // of a slot, among the tasks of such a loop
  sums_one_grain,         // the parameter gradient is right for a chunk of one grain alone
  float_sum,              // the parameter gradient's sum over tokens, in fp64 too
  neighbours_dy,          // dx reads dy of the row before its own, which y does not
  draws_by_chunk,         // keys what it draws by the chunk, not by the row
  drops_last_row,         // no dx for the last row of a sample
  wrong_alone,            // dx of samples of one token
  wrong_when_large,       // dx is clipped as if x were at most 10
  throws_when_frozen,     // as a primitive does that gets a gradient without rows
  throws_alone,           // in the backward of a sample of one row
  trained_elsewhere,      // dx counts twice where the parameter is frozen
};

struct wrong_rows {
  static constexpr tag<"gain"> gain{};
  static constexpr tag<"square"> square{};
  static constexpr const char* name = "rows";

  position width = 0;
  row_fault fault{};
  mutable double calls = 0;

  auto slots() const { return std::tuple{parameter(gain, 1, width, ones), saved(square, width)}; }

  void forward(auto& at, auto x, auto y) const {
    const auto g = at[gain], s = at[square];
    if (fault == row_fault::overruns_slot && s.rows < 8) s(s.rows, 0) = 0;
    double extra = 1;
    if (fault == row_fault::sinks_deep) extra = deep(x.rows);
    if (fault == row_fault::counts_calls) extra += 1e-3 * ++calls;
    if (fault == row_fault::allocates) extra = std::vector<double>(std::size_t(width), 1.0).back();
    if (fault == row_fault::shares_a_row) {
      if (y.data == nullptr) return;
      for_rows(at.on, x.rows, x.cols, [&](position i) {
        for (position j = 0; j < width; ++j) {
          s(0, j) = x(i, j) * x(i, j);
          y(i, j) = g(0, j) * s(0, j);
        }
      });
      for (position i = 0; i < x.rows; ++i)
        for (position j = 0; j < width; ++j) s(i, j) = x(i, j) * x(i, j);
      return;
    }
    for (const piece& p : at.pieces())
      for (position i = p.row; i < p.last(); ++i) {
        const position partner = neighbour(p, i);
        for (position j = 0; j < width; ++j) {
          s(i, j) = x(i, j) * x(i, j);
          if (partner >= 0) s(i, j) += x(partner, j) * x(partner, j) / 2;
          const double before = double(p.start + i - p.row);
          if (fault == row_fault::nothing_at_first) extra = before / before;
          y(i, j) = g(0, j) * s(i, j) * scale<decltype(y(0, 0))>(at, i) * scalar_of(y, extra);
        }
      }
  }

  // dx = 2 gain ∘ x ∘ dy, dgain = Σ x ∘ x ∘ dy
  void backward(auto& at, auto x, auto, auto dy, auto dx) const {
    const auto g = at[gain], s = at[square], dg = at.d(gain);
    if (fault == row_fault::frozen_stops_gradient && !at.trains(gain)) return;
    if (fault == row_fault::throws_when_frozen)
      expect_gradient("rows", "d_gain", at.d(gain), {"one", 1}, {"in", x.cols});
    if (fault == row_fault::throws_alone && !at.on.counts_only())
      for (const piece& p : at.pieces())
        if (at.chunk.samples->segment(p.segment).rows() == 1) throw std::runtime_error("alone");
    if (fault == row_fault::ignores_frozen && !at.trains(gain))
      for (position j = 0; j < width; ++j) dg(0, j) += s(0, j) * dy(0, j);
    if (at.trains(gain) && fault == row_fault::sums_in_tasks && dy.data != nullptr)
      // Descending as one grain would be, while one thread does it.
      for_rows(at.on, dy.rows, dy.cols, [&](position task) {
        const position i = dy.rows - 1 - task;
        for (position j = 0; j < width; ++j) dg(0, j) += s(i, j) * dy(i, j);
      });
    else if (at.trains(gain)) {
      if (fault == row_fault::assigns && at.chunk.rows.last == at.chunk.samples->tokens())
        for (position j = 0; j < width; ++j) dg(0, j) = 0;
      const std::array<position, 2> one{at.chunk.rows.first, at.chunk.rows.last};
      std::span<const position> edges = at.grains();
      if (fault == row_fault::sums_by_chunk) edges = one;
      for (std::size_t e = edges.size() - 1; e-- > 0;)
        for (position j = 0; j < width; ++j) {
          auto sum = dg(0, j) - dg(0, j);
          float coarse = 0;
          for (position row = edges[e + 1]; row-- > edges[e];) {
            const position i = row - at.chunk.rows.first;
            sum += s(i, j) * scale<decltype(sum)>(at, i) * dy(i, j);
            coarse += float(s(i, j) * dy(i, j));
          }
          if (fault == row_fault::float_sum) sum = scalar_of(dg, double(coarse));
          if (fault == row_fault::sums_one_grain && e > 0) sum /= 2;
          dg(0, j) += sum;
        }
    }
    const int sign = fault == row_fault::wrong_sign ? -1 : 1;
    for (const piece& p : at.pieces())
      for (position i = p.row; i < p.last(); ++i)
        for (position j = 0; j < width; ++j) {
          const position partner = neighbour(p, i);
          auto d = dy(i, j) * scale<decltype(dy(0, 0))>(at, i);
          if (partner >= 0) d += dy(partner, j) / 2;
          if (fault == row_fault::assigns_dx) dx(i, j) = 0;
          if (fault == row_fault::single_only && sizeof(d) == 4) d *= scalar_of(dx, 1.001);
          if (fault == row_fault::float_constant) d *= scalar_of(dx, 3 * double(1 / 3.0f));
          if (fault == row_fault::divides_by_x) d *= x(i, j) / x(i, j);
          if (fault == row_fault::neighbours_dy && i > p.row) d += dy(i - 1, j) / 64;
          if (fault == row_fault::drops_last_row || fault == row_fault::wrong_alone) {
            const position rows = at.chunk.samples->segment(p.segment).rows();
            if (fault == row_fault::wrong_alone ? rows == 1 : p.start + i - p.row + 1 == rows)
              d = 0;
          }
          if (fault == row_fault::wrong_when_large && x(i, j) * x(i, j) > 100) d /= 2;
          if (fault == row_fault::trained_elsewhere && !at.trains(gain)) d *= 2;
          dx(i, j) += scalar_of(dx, sign * 2) * g(0, j) * x(i, j) * d;
        }
    if (fault == row_fault::overwrites_dy)
      const_cast<std::remove_cvref_t<decltype(dx(0, 0))>&>(dy(0, 0)) = 0;
  }

 private:
  // 1, by 8 KiB of stack for each row.
  [[gnu::noinline]] static double deep(position rows) {
    volatile char area[8192];
    area[0] = 1;
    return rows > 1 ? deep(rows - 1) * area[0] : area[0];
  }
  static auto scalar_of(auto rows, double v) { return std::decay_t<decltype(rows(0, 0))>(v); }
  template <class Entry>
  std::decay_t<Entry> scale(auto& at, position i) const {
    double factor = 1;
    if (fault == row_fault::depends_on_chunk) factor += 0.01 * double(i);
    if (fault == row_fault::depends_on_axis) factor += 0.01 * double(at.chunk.rows.first + i);
    if (fault == row_fault::ignores_seed) factor += 0.01 * double(at.chunk.step);
    if (fault == row_fault::draws_by_chunk)
      factor +=
          1e-3 * double((at.chunk.seed + 3 * at.chunk.step + std::size_t(at.chunk.index)) % 7);
    if (fault == row_fault::knows_length) {
      const packed& samples = *at.chunk.samples;
      factor += 0.01 * double(samples.segment(samples.segment_at(at.chunk.rows.first + i)).rows());
    }
    return std::decay_t<Entry>(factor);
  }
  // Rows 2k and 2k + 1 of a segment are never in different tiles.
  position neighbour(const piece& p, position i) const {
    if (fault != row_fault::mixes_rows) return -1;
    const position other = i + ((p.start + i - p.row) % 2 == 0 ? 1 : -1);
    return other < p.last() ? other : -1;
  }
};

}  // namespace streambp
