#include <streambp/cpu/block_product.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <streambp/cpu/pool.hpp>
#include <vector>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

// One of the three products, and which of its factors are stored across.
template <class S>
struct form {
  void (*multiply)(packing_space<S>, view<const S>, view<const S>, view<S>, streambp::write);
  bool x_across, w_across;

  // Some rows of the product, some columns, some of the summed dimension.
  static view<const S> part(view<const S> of, bool by_row, row_range r) {
    return by_row ? of.rows_in(r) : of.middle_cols(r.first, r.rows());
  }
  view<const S> x_rows(view<const S> x, row_range r) const { return part(x, !x_across, r); }
  view<const S> x_depth(view<const S> x, row_range r) const { return part(x, x_across, r); }
  view<const S> w_depth(view<const S> w, row_range r) const { return part(w, w_across, r); }
};
template <class S>
const form<S> forms[] = {{times_transposed<S>, false, false},
                         {times<S>, false, true},
                         {transposed_times<S>, true, true}};

struct shape {
  position rows, depth, cols;
};

template <class S>
struct factors {
  guarded<S> x, w, y;
  factors(const form<S>& f, shape s, position skew = 1)
      : x(f.x_across ? s.depth : s.rows, f.x_across ? s.rows : s.depth, 1, 1., 0., skew),
        w(f.w_across ? s.depth : s.cols, f.w_across ? s.cols : s.depth, 2, 1., 0., skew),
        y(s.rows, s.cols, 3, 1., 0., skew) {}

  // To whole numbers, whose sums of products are exact in any order.
  void round() {
    for (const auto* m : {&x, &w, &y})
      for (position i = 0; i < (**m).rows; ++i)
        for (position j = 0; j < (**m).cols; ++j) (*m)(i, j) = std::round(3 * (*m)(i, j));
  }
};

// Entries of the product, in double.
template <class S>
auto naive(const form<S>& f, const factors<S>& in, streambp::write how) {
  return [&f, &in, how](position i, position j) {
    double sum = how == streambp::write::add ? double(in.y(i, j)) : 0;
    for (position k = 0; k < (f.x_across ? (*in.x).rows : (*in.x).cols); ++k)
      sum += double(f.x_across ? in.x(k, i) : in.x(i, k)) *
             double(f.w_across ? in.w(k, j) : in.w(j, k));
    return sum;
  };
}

// A thread's packing buffer: NaN, so that nothing left in it may count, and a mark at its end.
template <class S>
class packing_buffer {
  static constexpr std::size_t marks = 64;
  position columns_;
  std::vector<S> store_;

  position size() const { return blocking<S>::packing(columns_); }

 public:
  explicit packing_buffer(position columns = blocking<S>::columns)
      : columns_(columns),
        store_(std::size_t(size()) + 64 / sizeof(S) + marks, std::numeric_limits<S>::quiet_NaN()) {
    std::fill_n(data().data + size(), marks, S(-77));
  }
  packing_space<S> data() {
    const auto at = reinterpret_cast<std::uintptr_t>(store_.data());
    return {store_.data() + (64 - at % 64) % 64 / sizeof(S), columns_};
  }
  bool intact() {
    const S* const end = data().data + size();
    return std::all_of(end, end + marks, [](S x) { return x == -77; });
  }
};

// Ragged and whole blocks of every dimension, and none.
constexpr shape shapes[] = {{1, 1, 1},    {7, 3, 5},   {8, 257, 17}, {13, 256, 53}, {131, 29, 97},
                            {5, 600, 47}, {3, 7, 829}, {9, 0, 4},    {0, 5, 6},     {4, 5, 0}};

}  // namespace

TEST_CASE_TEMPLATE("block products are exact in whole numbers, and write their rows alone", S,
                   float, double) {
  packing_buffer<S> packing;
  for (const form<S>& f : forms<S>)
    for (const shape s : shapes)
      for (const auto how : {streambp::write::assign, streambp::write::add}) {
        CAPTURE(s.rows);
        CAPTURE(s.depth);
        CAPTURE(s.cols);
        factors<S> in(f, s);
        in.round();
        guarded<S> y = in.y;
        f.multiply(packing.data(), *in.x, *in.w, *y, how);
        CHECK(error_of(*y, naive(f, in, how)) == 0);
        CHECK(y.intact());
        CHECK(packing.intact());
      }
}

TEST_CASE_TEMPLATE("block products: bits do not depend on what they are packed in", S, float,
                   double) {
  using sizes = blocking<S>;
  packing_buffer<S> whole;
  for (const position columns : {sizes::panel, 2 * sizes::panel, sizes::columns_for(0)}) {
    packing_buffer<S> small(columns);
    for (const form<S>& f : forms<S>)
      for (const shape s : shapes) {
        const factors<S> in(f, s);
        guarded<S> once = in.y, again = in.y;
        f.multiply(whole.data(), *in.x, *in.w, *once, streambp::write::add);
        f.multiply(small.data(), *in.x, *in.w, *again, streambp::write::add);
        CHECK(same_bits(once, again));
        CHECK(again.intact());
        CHECK(small.intact());
      }
  }
}

TEST_CASE_TEMPLATE("block products: a row's bits in any rows, places, strides and threads", S,
                   float, double) {
  pool both(2);
  packing_buffer<S> packing[2];
  for (const form<S>& f : forms<S>)
    for (const shape s : {shape{131, 300, 53}, {131, 17, 829}}) {
      const factors<S> in(f, s), moved(f, s, 6);
      guarded<S> once = in.y;
      f.multiply(packing[0].data(), *in.x, *in.w, *once, streambp::write::add);
      for (const auto& edges : {std::vector<position>{0, 1, 8, 13, 130, 131}, {0, 64, 67, 131}}) {
        guarded<S> again = moved.y;
        both.run(position(edges.size()) - 1, [&](position task, int thread) {
          const row_range some{edges[std::size_t(task)], edges[std::size_t(task) + 1]};
          f.multiply(packing[thread].data(), f.x_rows(*moved.x, some), *moved.w,
                     (*again).rows_in(some), streambp::write::add);
        });
        CHECK(same_bits(once, again));
        CHECK(again.intact());
      }
    }
}

TEST_CASE_TEMPLATE("block products add one block of the depth after another", S, float, double) {
  constexpr position block = blocking<S>::depth;
  packing_buffer<S> packing;
  for (const form<S>& f : forms<S>) {
    const factors<S> in(f, {13, 2 * block + 31, 53});
    guarded<S> whole = in.y, blocks = in.y, sums = in.y;
    f.multiply(packing.data(), *in.x, *in.w, *whole, streambp::write::add);
    for (const row_range k :
         {row_range{0, block}, {block, 2 * block}, {2 * block, 2 * block + 31}}) {
      const view<const S> x = f.x_depth(*in.x, k), w = f.w_depth(*in.w, k);
      guarded<S> one(13, 53);
      f.multiply(packing.data(), x, w, *blocks, streambp::write::add);
      f.multiply(packing.data(), x, w, *one, streambp::write::assign);
      for (position i = 0; i < 13; ++i)
        for (position j = 0; j < 53; ++j) sums(i, j) += one(i, j);
    }
    CHECK(same_bits(whole, blocks));
    CHECK(same_bits(whole, sums));
    CHECK(error_of(*whole, naive(f, in, streambp::write::add)) < (sizeof(S) == 4 ? 5e-6 : 1e-14));
  }
}
