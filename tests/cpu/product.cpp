#include <streambp/cpu/product.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace streambp;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define COUNTS_MALLOC
static std::atomic<long> mallocs = 0;
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* malloc(std::size_t bytes) {
  ++mallocs;
  return __libc_malloc(bytes);
}
#endif

namespace {

template <class S>
constexpr S poison = std::numeric_limits<S>::quiet_NaN();

// A matrix with a margin of NaN on all sides.
template <class S>
class matrix {
 public:
  matrix(position rows, position cols, unsigned seed, position margin = 3)
      : rows_(rows),
        cols_(cols),
        stride_(cols + margin),
        cells_(std::size_t(margin + (rows + 2) * stride_), poison<S>) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (position i = 0; i < rows; ++i)
      for (position j = 0; j < cols; ++j) all()(i, j) = S(uniform(random));
  }
  view<S> all() { return {cells_.data() + stride_ + 1, rows_, cols_, stride_}; }
  operator view<S>() { return all(); }
  void fill(S value) {
    for (position i = 0; i < rows_; ++i)
      for (position j = 0; j < cols_; ++j) all()(i, j) = value;
  }
  bool margin_is_whole() const {
    std::size_t inside = 0, numbers = 0;
    for (S cell : cells_) numbers += !std::isnan(cell);
    for (position i = 0; i < rows_; ++i)
      for (position j = 0; j < cols_; ++j)
        inside += !std::isnan(cells_[std::size_t((i + 1) * stride_ + 1 + j)]);
    return inside == numbers;
  }

 private:
  position rows_, cols_, stride_;
  std::vector<S> cells_;
};

template <class S>
bool same_bits(view<S> a, view<S> b) {
  if (a.rows != b.rows || a.cols != b.cols) return false;
  for (position i = 0; i < a.rows; ++i)
    if (std::memcmp(a.row(i), b.row(i), std::size_t(a.cols) * sizeof(S)) != 0) return false;
  return true;
}

template <class S>
struct machine {
  explicit machine(int threads)
      : on(threads), packing(std::aligned_alloc(64, cpu::device<S>::packing_bytes(threads))) {
    std::memset(packing, 0xff, cpu::device<S>::packing_bytes(threads));  // NaN
    on.lend(static_cast<std::byte*>(packing));
  }
  ~machine() { std::free(packing); }
  cpu::device<S> on;
  void* packing;
};

// y (rows, cols), a sum over depth; x(i, k) and w(j, k) say where the factors are. The error of a
// sum in any order is at most its length times epsilon times the sum of the absolute values.
template <class S, class X, class W>
bool agrees(view<S> y, view<S> before, position depth, const X& x, const W& w) {
  for (position i = 0; i < y.rows; ++i)
    for (position j = 0; j < y.cols; ++j) {
      long double sum = before(i, j), size = std::abs(before(i, j));
      for (position k = 0; k < depth; ++k) {
        const long double term = static_cast<long double>(x(i, k)) * w(j, k);
        sum += term;
        size += std::abs(term);
      }
      const long double bound = (depth + 2) * std::numeric_limits<S>::epsilon() * size;
      if (!(std::abs(y(i, j) - sum) <= bound)) return false;
    }
  return true;
}

struct shape {
  position rows, in, out;
};
const shape shapes[] = {{1, 1, 1},    {7, 3, 5},     {8, 64, 17},  {9, 257, 48}, {0, 5, 7},
                        {13, 1, 800}, {300, 100, 1}, {21, 600, 3}, {3, 520, 57}, {50, 64, 131}};

}  // namespace

TEST_CASE_TEMPLATE("products agree with loops and write nothing else", S, float, double) {
  for (int threads : {1, 2})
    for (const shape s : shapes)
      for (const streambp::write how : {streambp::write::assign, streambp::write::add}) {
        CAPTURE(threads);
        CAPTURE(s.rows);
        CAPTURE(s.in);
        CAPTURE(s.out);
        machine<S> m(threads);
        matrix<S> x(s.rows, s.in, 1), w(s.out, s.in, 2), dy(s.rows, s.out, 3);
        matrix<S> y(s.rows, s.out, 4), dx(s.rows, s.in, 5), dw(s.out, s.in, 6);
        matrix<S> y0 = y, dx0 = dx, dw0 = dw;
        if (how == streambp::write::assign) {
          y.fill(poison<S>), dx.fill(poison<S>);
          y0.fill(0), dx0.fill(0);
        }
        const position grains[] = {40, 40 + s.rows / 3, 40 + s.rows};

        project(m.on, x.all(), w.all(), y.all(), how);
        project_back(m.on, dy.all(), w.all(), dx.all(), how);
        add_weight_gradient(m.on, dy.all(), x.all(), dw.all(), grains);

        const auto entry = [](view<S> v) {
          return [v](position i, position k) { return v(i, k); };
        };
        const auto across = [](view<S> v) {
          return [v](position i, position k) { return v(k, i); };
        };
        CHECK(agrees<S>(y, y0, s.in, entry(x), entry(w)));
        CHECK(agrees<S>(dx, dx0, s.out, entry(dy), across(w)));
        CHECK(agrees<S>(dw, dw0, s.rows, across(dy), across(x)));
        CHECK((y.margin_is_whole() && dx.margin_is_whole() && dw.margin_is_whole()));
        CHECK(m.on.flops() == 3 * 2 * s.rows * s.in * s.out);
      }
}

TEST_CASE_TEMPLATE("a sum over nothing is zero when assigned, and adds nothing", S, float, double) {
  machine<S> m(1);
  matrix<S> x(9, 0, 1), w(5, 0, 2), y(9, 5, 3), y0 = y;
  project(m.on, x.all(), w.all(), y.all(), streambp::write::add);
  CHECK(same_bits<S>(y, y0));
  y.fill(poison<S>);
  y0.fill(0);
  project(m.on, x.all(), w.all(), y.all(), streambp::write::assign);
  CHECK(same_bits<S>(y, y0));
}

TEST_CASE_TEMPLATE("a row's bits do not depend on other rows, its place, strides or threads", S,
                   float, double) {
  for (const auto& [in, out] :
       {std::pair<position, position>{70, 131}, {300, 48}, {33, 1}, {5, 829}}) {
    const position rows = 301;
    matrix<S> x(rows, in, 1), dy(rows, out, 2), w(out, in, 3);
    matrix<S> y(rows, out, 4), dx(rows, in, 5), before = y;
    machine<S> one(1);
    project(one.on, x.all(), w.all(), y.all(), streambp::write::add);
    project_back(one.on, dy.all(), w.all(), dx.all());
    for (int threads : {1, 2, 3})
      for (const position first : {0, 1, 8, 13, 40})
        for (const position count : {1, 2, 7, 8, 9, 16, 100, 261}) {
          CAPTURE(in);
          CAPTURE(out);
          CAPTURE(threads);
          CAPTURE(first);
          CAPTURE(count);
          machine<S> m(threads);
          const row_range some{first, first + count};
          matrix<S> part_x(count, in, 0, 10), part_dy(count, out, 0, 5), part_dx(count, in, 0, 1);
          matrix<S> part_y(count, out, 0, 12);
          cpu::kernel::assign<S>(x.all().rows_in(some), part_x);
          cpu::kernel::assign<S>(dy.all().rows_in(some), part_dy);
          cpu::kernel::assign<S>(before.all().rows_in(some), part_y);
          project(m.on, part_x.all(), w.all(), part_y.all(), streambp::write::add);
          project_back(m.on, part_dy.all(), w.all(), part_dx.all());
          REQUIRE(same_bits<S>(part_y, y.all().rows_in(some)));
          REQUIRE(same_bits<S>(part_dx, dx.all().rows_in(some)));
        }
  }
}

TEST_CASE_TEMPLATE("a row of NaN stays one row", S, float, double) {
  machine<S> m(2);
  for (const position bad : {0, 5, 16, 18}) {
    matrix<S> x(19, 40, 1), w(60, 40, 2), clean(19, 60, 3), y(19, 60, 4);
    project(m.on, x.all(), w.all(), clean.all());
    for (position k = 0; k < 40; ++k) x.all()(bad, k) = poison<S>;
    project(m.on, x.all(), w.all(), y.all());
    for (position i = 0; i < 19; ++i)
      CHECK(same_bits<S>(y.all().middle_rows(i, 1), clean.all().middle_rows(i, 1)) == (i != bad));
  }
}

TEST_CASE_TEMPLATE("a weight gradient's bits do not depend on chunks or threads", S, float,
                   double) {
  const std::vector<position> grains{0, 5, 64, 65, 200, 301};
  for (const auto& [in, out] :
       {std::pair<position, position>{70, 131}, {829, 9}, {48, 300}, {1, 1}}) {
    matrix<S> x(301, in, 1), dy(301, out, 2), dw(out, in, 3), before = dw;
    machine<S> one(1);
    add_weight_gradient(one.on, dy.all(), x.all(), dw.all(), grains);
    for (int threads : {1, 2, 3})
      for (unsigned cuts = 0; cuts < 16; ++cuts) {  // which inner edges are a chunk's
        machine<S> m(threads);
        matrix<S> sum = before;
        std::size_t last = 5;
        for (std::size_t g = 5; g-- > 0;) {
          if (g != 0 && !(cuts >> (g - 1) & 1)) continue;
          const std::span<const position> chunk(grains.data() + g, last - g + 1);
          const row_range rows{chunk.front(), chunk.back()};
          add_weight_gradient(m.on, dy.all().rows_in(rows), x.all().rows_in(rows), sum.all(),
                                   chunk);
          last = g;
        }
        CAPTURE(in);
        CAPTURE(out);
        CAPTURE(threads);
        CAPTURE(cuts);
        REQUIRE(same_bits<S>(sum, dw));
      }
  }
}

// What threads rely on: cuts at multiples of a panel and of the height are not seen in the bits.
TEST_CASE_TEMPLATE("products may be cut at panels of columns", S, float, double) {
  using sizes = cpu::blocking<S>;
  const position cols = 2 * sizes::columns + 3 * sizes::panel + 29, depth = sizes::depth + 44;
  machine<S> m(1);
  S* const packing = static_cast<S*>(m.packing);
  matrix<S> x(16, depth, 1), xt(depth, 16, 2), wt(cols, depth, 3), w(depth, cols, 4);
  matrix<S> nt(16, cols, 0), nn(16, cols, 0), tn(16, cols, 0), part(16, cols, 0);
  cpu::times_transposed(packing, x.all(), wt.all(), nt.all(), streambp::write::assign);
  cpu::times(packing, x.all(), w.all(), nn.all(), streambp::write::assign);
  cpu::transposed_times(packing, xt.all(), w.all(), tn.all(), streambp::write::assign);
  for (const position panels : {1, 2, 3, 7, 20}) {
    const auto by_pieces = [&](auto product) {
      part.fill(poison<S>);
      for (position j = 0; j < cols; j += panels * sizes::panel)
        product(row_range{j, std::min(cols, j + panels * sizes::panel)});
    };
    const auto of = [](view<S> v, row_range j) { return v.middle_cols(j.first, j.rows()); };
    by_pieces([&](row_range j) {
      cpu::times_transposed(packing, x.all(), wt.all().rows_in(j), of(part, j),
                            streambp::write::assign);
    });
    CHECK(same_bits<S>(part, nt));
    by_pieces([&](row_range j) {
      cpu::times(packing, x.all(), of(w, j), of(part, j), streambp::write::assign);
    });
    CHECK(same_bits<S>(part, nn));
    by_pieces([&](row_range j) {
      cpu::transposed_times(packing, xt.all(), of(w, j), of(part, j), streambp::write::assign);
    });
    CHECK(same_bits<S>(part, tn));
  }
}

TEST_CASE(
    "shares cover a result once, on the grid that keeps the bits, one a thread where it can") {
  using sizes = cpu::blocking<float>;
  for (int threads : {1, 2, 3, 8, 64})
    for (const auto& [rows, cols] : {std::pair<position, position>{0, 5},
                                     {5, 0},
                                     {1, 1},
                                     {300, 512},
                                     {128, 32001},
                                     {32000, 77}}) {
      const cpu::kernel::share<float> share(rows, cols, threads);
      position covered = 0;
      for (position t = 0; t < share.tasks(); ++t) {
        const row_range i = share.rows_of(t), j = share.cols_of(t);
        CHECK((i.first % sizes::height == 0 && j.first % sizes::panel == 0));
        CHECK((i.rows() > 0 && j.rows() > 0));
        covered += i.rows() * j.rows();
      }
      CHECK(covered == rows * cols);
      if (rows * cols > 1 << 17) CHECK(share.tasks() >= threads);
    }
}

#ifdef COUNTS_MALLOC
TEST_CASE("products take no memory") {
  machine<float> m(2);
  matrix<float> x(301, 700, 1), w(900, 700, 2), y(301, 900, 3), dx(301, 700, 4);
  const position grains[] = {0, 256, 301};
  const long before = mallocs;
  project(m.on, x.all(), w.all(), y.all());
  project_back(m.on, y.all(), w.all(), dx.all());
  add_weight_gradient(m.on, y.all(), x.all(), w.all(), grains);
  CHECK(mallocs == before);
}
#endif

TEST_CASE("a device without threads counts and touches nothing") {
  cpu::device<float> on;
  const view<float> x(nullptr, 1 << 20, 512), w(nullptr, 151936, 512), y(nullptr, 1 << 20, 151936);
  project(on, x, w, y);
  CHECK(on.flops() == 2 * position(1 << 20) * 151936 * 512);
}
