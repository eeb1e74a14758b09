#include "streambp/cpu/attention.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

using namespace streambp;
using namespace streambp::cpu;

namespace {

template <class S>
constexpr double tolerance = sizeof(S) == 4 ? 2e-5 : 1e-13;  // of a tensor's largest entry

double noise(position i, int seed) {
  const auto h =
      (std::uint64_t(i) + 1) * 0x9e3779b97f4a7c15 + std::uint64_t(seed) * 0x632be59bd9b4e019;
  return double((h ^ h >> 29) * 0xbf58476d1ce4e5b9 >> 40) / double(1 << 23) - 1;
}

template <class S>
struct matrix {
  position rows, cols;
  std::vector<S> data;

  matrix(position rows, position cols, S value = 0)
      : rows(rows), cols(cols), data(std::size_t(rows * cols), value) {}
  static matrix random(position rows, position cols, int seed, double size = 1) {
    matrix m(rows, cols);
    for (position i = 0; i < rows * cols; ++i) m.data[i] = S(size * noise(i, seed));
    return m;
  }
  operator view<S>() { return {data.data(), rows, cols}; }
  operator view<const S>() const { return {data.data(), rows, cols}; }
  S& operator()(position i, position j) { return data[i * cols + j]; }
  S operator()(position i, position j) const { return data[i * cols + j]; }
  bool operator==(const matrix& other) const {
    return rows == other.rows && cols == other.cols &&
           std::memcmp(data.data(), other.data.data(), data.size() * sizeof(S)) == 0;
  }
  matrix<S> rows_in(row_range r) const {
    matrix part(r.rows(), cols);
    std::copy_n(data.begin() + r.first * cols, r.rows() * cols, part.data.begin());
    return part;
  }
};

template <class S>
struct lent_device {
  device<S> on;
  std::vector<std::byte> packing;

  explicit lent_device(int threads) : on(threads), packing(device<S>::packing_bytes(threads) + 64) {
    void* aligned = packing.data();
    std::size_t space = packing.size();
    on.lend(static_cast<std::byte*>(std::align(64, 64, aligned, space)));
  }
};

// One packed batch, its inputs and everything that attention makes of them.
template <class S>
struct problem {
  attention_shape shape;
  packed samples;
  position prefix;
  matrix<S> q, k, v, d_o, sinks;
  bool with_sinks;
  matrix<S> o, lse, dq, dk, dv, dsinks;

  problem(attention_shape shape, packed samples, position prefix = 0, bool with_sinks = false,
          double size = 1)
      : shape(shape),
        samples(samples),
        prefix(prefix),
        q(matrix<S>::random(tokens(), shape.heads * shape.key_width, 1, size)),
        k(matrix<S>::random(memory(), shape.kv_heads * shape.key_width, 2, size)),
        v(matrix<S>::random(memory(), shape.kv_heads * shape.value_width, 3)),
        d_o(matrix<S>::random(tokens(), shape.heads * shape.value_width, 4)),
        sinks(matrix<S>::random(1, shape.heads, 5)),
        with_sinks(with_sinks),
        o(tokens(), d_o.cols),
        lse(tokens(), shape.heads),
        dq(tokens(), q.cols),
        dk(memory(), k.cols),
        dv(memory(), v.cols),
        dsinks(1, shape.heads) {
    clear();
  }

  position tokens() const { return samples.tokens(); }
  position memory() const { return prefix + samples.tokens(); }

  void clear() {
    const S nan = std::numeric_limits<S>::quiet_NaN();
    o = matrix<S>(o.rows, o.cols, nan);
    lse = matrix<S>(lse.rows, lse.cols, nan);
    dq = matrix<S>(dq.rows, dq.cols, nan);
    dk = matrix<S>::random(dk.rows, dk.cols, 6);  // gradients are added
    dv = matrix<S>::random(dv.rows, dv.cols, 7);
    dsinks = matrix<S>::random(1, dsinks.cols, 8);
  }

  // Chunks ascending, then descending.
  void run(int threads = 1, std::vector<position> edges = {}) {
    if (edges.empty()) edges = {0, tokens()};
    clear();
    lent_device<S> lent(threads);
    matrix<S> workspace(threads, attention_workspace(shape), S(1e30));
    const S* const sink = with_sinks ? sinks.data.data() : nullptr;
    for (std::size_t c = 0; c + 1 < edges.size(); ++c) {
      const row_range rows{edges[c], edges[c + 1]};
      attention_forward(lent.on, shape, piece_list(samples, rows, prefix), view<S>(q).rows_in(rows),
                        k, v, sink, view<S>(o).rows_in(rows), view<S>(lse).rows_in(rows),
                        workspace);
    }
    for (std::size_t c = edges.size() - 1; c-- > 0;) {
      const row_range rows{edges[c], edges[c + 1]};
      attention_backward(
          lent.on, shape, piece_list(samples, rows, prefix), view<S>(q).rows_in(rows), k, v, sink,
          view<S>(o).rows_in(rows), view<S>(lse).rows_in(rows), view<S>(d_o).rows_in(rows),
          view<S>(dq).rows_in(rows), dk, dv, with_sinks ? dsinks.data.data() : nullptr, workspace);
    }
  }

  // The same with the rows of memory that `edges` divide, in turn: what is not lent is not there,
  // and what a walk hands from block to block stands where the caller keeps it.
  void run_in_blocks(const std::vector<position>& chunks, const std::vector<position>& edges) {
    clear();
    const S nan = std::numeric_limits<S>::quiet_NaN();
    lent_device<S> lent(1);
    matrix<S> workspace(1, attention_workspace(shape), nan), sum(tokens(), shape.heads, nan);
    const S* const sink = with_sinks ? sinks.data.data() : nullptr;
    const auto walk = [&](std::size_t c, const auto& call) {
      const row_range rows{chunks[c], chunks[c + 1]};
      const piece_list pieces(samples, rows, prefix);
      for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
        const row_range block{edges[b], edges[b + 1]}, all = lent_rows(shape, block, memory());
        const auto k_rows = std::make_unique<matrix<S>>(k.rows_in(all)),
                   v_rows = std::make_unique<matrix<S>>(v.rows_in(all));
        const matrix<S>&k_lent = *k_rows, &v_lent = *v_rows;
        call(rows, pieces, memory_block<S>{block, k_lent, v_lent, b == 0});
      }
    };
    for (std::size_t c = 0; c + 1 < chunks.size(); ++c)
      walk(c, [&](row_range rows, const piece_list& pieces, const memory_block<S>& block) {
        attention_forward(lent.on, shape, pieces, view<S>(q).rows_in(rows), block, sink,
                          view<S>(o).rows_in(rows), view<S>(lse).rows_in(rows),
                          view<S>(sum).rows_in(rows), workspace);
      });
    for (std::size_t c = chunks.size() - 1; c-- > 0;)
      walk(c, [&](row_range rows, const piece_list& pieces, const memory_block<S>& block) {
        matrix<S> dk_lent = dk.rows_in(block.rows), dv_lent = dv.rows_in(block.rows);
        attention_backward(lent.on, shape, pieces, view<S>(q).rows_in(rows), block, sink,
                           view<S>(o).rows_in(rows), view<S>(lse).rows_in(rows),
                           view<S>(d_o).rows_in(rows), view<S>(dq).rows_in(rows), dk_lent, dv_lent,
                           with_sinks ? dsinks.data.data() : nullptr, workspace);
        for (auto [from, to] : {std::pair{&dk_lent, &dk}, std::pair{&dv_lent, &dv}})
          std::copy(from->data.begin(), from->data.end(),
                    to->data.begin() + block.rows.first * to->cols);
      });
  }

  bool same(const problem& other) const {
    return o == other.o && lse == other.lse && dq == other.dq && dk == other.dk && dv == other.dv &&
           dsinks == other.dsinks;
  }

  // Row by row in doubles, from the formulas. Returns the pairs seen.
  position naive() {
    clear();
    position pairs = 0;
    matrix<double> gk(dk.rows, dk.cols), gv(dv.rows, dv.cols), gs(1, shape.heads);
    const position kw = shape.key_width, vw = shape.value_width;
    for (position s = 0; s < samples.segments(); ++s) {
      const row_range own = samples.segment(s);
      std::vector<position> keys;
      for (position j = 0; j < prefix; ++j) keys.push_back(j);
      for (position j = own.first; j < own.last; ++j) keys.push_back(prefix + j);
      for (position row = own.first; row < own.last; ++row)
        for (position h = 0; h < shape.heads; ++h) {
          const position g = h / (shape.heads / shape.kv_heads), place = prefix + row - own.first;
          std::vector<position> seen;
          for (position j = 0; j < position(keys.size()); ++j)
            if (shape.sees_all || (j <= place && (shape.window == 0 || j > place - shape.window)))
              seen.push_back(keys[j]);
          if (h == 0) pairs += position(seen.size());
          std::vector<double> raw, score;
          double top = with_sinks ? double(sinks(0, h)) : -INFINITY, sum = 0, delta = 0;
          for (position j : seen) {
            double x = 0;
            for (position e = 0; e < kw; ++e)
              x += double(q(row, h * kw + e)) * double(k(j, g * kw + e));
            raw.push_back(x *= shape.scale);
            score.push_back(shape.softcap > 0 ? shape.softcap * std::tanh(x / shape.softcap) : x);
            top = std::max(top, score.back());
          }
          for (double x : score) sum += std::exp(x - top);
          if (with_sinks) sum += std::exp(double(sinks(0, h)) - top);
          const double log_sum = top + std::log(sum);
          lse(row, h) = S(log_sum);
          std::vector<double> out(vw), dq_row(kw);
          for (std::size_t n = 0; n < seen.size(); ++n)
            for (position e = 0; e < vw; ++e)
              out[e] += std::exp(score[n] - log_sum) * double(v(seen[n], g * vw + e));
          for (position e = 0; e < vw; ++e) {
            o(row, h * vw + e) = S(out[e]);
            delta += out[e] * double(d_o(row, h * vw + e));
          }
          for (std::size_t n = 0; n < seen.size(); ++n) {
            const double p = std::exp(score[n] - log_sum);
            double dp = 0;
            for (position e = 0; e < vw; ++e) {
              dp += double(d_o(row, h * vw + e)) * double(v(seen[n], g * vw + e));
              gv(seen[n], g * vw + e) += p * double(d_o(row, h * vw + e));
            }
            double ds = p * (dp - delta) * shape.scale;
            if (shape.softcap > 0) ds *= 1 - std::pow(std::tanh(raw[n] / shape.softcap), 2);
            for (position e = 0; e < kw; ++e) {
              dq_row[e] += ds * double(k(seen[n], g * kw + e));
              gk(seen[n], g * kw + e) += ds * double(q(row, h * kw + e));
            }
          }
          for (position e = 0; e < kw; ++e) dq(row, h * kw + e) = S(dq_row[e]);
          if (with_sinks) gs(0, h) -= std::exp(double(sinks(0, h)) - log_sum) * delta;
        }
    }
    const auto add = [](matrix<S>& to, const matrix<double>& from) {
      for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += S(from.data[i]);
    };
    add(dk, gk);
    add(dv, gv);
    add(dsinks, gs);
    return pairs;
  }
};

// Largest difference over the largest entry, where that is not about 0; infinite for NaN.
template <class S>
double error(const matrix<S>& a, const matrix<S>& b) {
  double most = 0, size = 0.05;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double d = std::abs(double(a.data[i]) - double(b.data[i]));
    most = d <= INFINITY ? std::max(most, d) : INFINITY;
    size = std::max(size, std::abs(double(b.data[i])));
  }
  return most / size;
}

template <class S>
void check_results(const problem<S>& p, double loose = 1) {
  problem<S> right = p;
  right.naive();
  const double within = loose * tolerance<S>;
  CHECK(error(p.o, right.o) < within);
  CHECK(error(p.lse, right.lse) < within);
  CHECK(error(p.dq, right.dq) < within);
  CHECK(error(p.dk, right.dk) < within);
  CHECK(error(p.dv, right.dv) < within);
  CHECK(error(p.dsinks, right.dsinks) < within);
}

template <class S>
void check_against_naive(problem<S> p, double loose = 1) {
  p.run();
  check_results(p, loose);
}

const packed several({0, 1, 65, 130, 130, 330});  // lengths 1, 64, 65, 0, 200

struct variant {
  attention_shape shape;
  position prefix = 0;
  bool sinks = false;
};

std::vector<variant> variants() {
  const attention_shape gqa{4, 2, 8, 8, 0.7};
  const auto with = [](attention_shape shape, auto change) {
    change(shape);
    return shape;
  };
  const auto window = [&](position n) { return with(gqa, [n](auto& s) { s.window = n; }); };
  const auto cap = with(gqa, [](auto& s) { s.softcap = 0.9; });
  const auto all = with(gqa, [](auto& s) { s.sees_all = true; });
  const auto small = [&](position n) {
    return with(gqa, [n](auto& s) { s.tile = 8, s.window = n; });
  };
  return {{gqa},
          {{2, 2, 8, 8, 0.35}},
          {{6, 2, 8, 12, 0.35}},
          {{3, 1, 16, 8, 0.25}},
          {{1, 1, 5, 3, 1}},
          {window(1)},
          {window(33)},
          {window(64)},
          {window(70)},
          {cap},
          {gqa, 0, true},
          {all},
          {all, 5, true},
          {gqa, 13},
          {gqa, 300},
          {window(70), 40, true},
          {window(33), 300},
          {small(0)},
          {small(13), 11},
          {with(cap, [](auto& s) { s.window = 70; }), 3, true}};
}

// Every edge of a tile, and only some of them.
std::vector<position> tile_edges(const packed& samples, position tile, position every) {
  std::vector<position> edges{0};
  position n = 0;
  for (position s = 0; s < samples.segments(); ++s)
    for (position row = samples.segment(s).first; row < samples.segment(s).last; row += tile)
      if (row > edges.back() && ++n % every == 0) edges.push_back(row);
  edges.push_back(samples.tokens());
  return edges;
}

}  // namespace

TEST_CASE_TEMPLATE("attention agrees with its formulas", S, float, double) {
  for (const variant& c : variants()) {
    CAPTURE(c.shape.heads);
    CAPTURE(c.shape.window);
    CAPTURE(c.shape.softcap);
    CAPTURE(c.shape.sees_all);
    CAPTURE(c.shape.tile);
    CAPTURE(c.prefix);
    check_against_naive(problem<S>(c.shape, several, c.prefix, c.sinks));
  }
}

TEST_CASE_TEMPLATE("attention over several key blocks", S, float, double) {
  check_against_naive(problem<S>({2, 1, 8, 8, 0.5}, packed::one(700)));
  check_against_naive(problem<S>({2, 1, 8, 8, 0.5, 0, 250}, packed({0, 450}), 277));
}

TEST_CASE_TEMPLATE("attention with widely spread scores", S, float, double) {
  // Scores of some hundreds: rounded scores alone move exp by their size times the epsilon.
  check_against_naive(problem<S>({2, 1, 8, 8, 1}, packed::one(130), 0, true, 12), 200);
  problem<S> p({2, 1, 8, 8, 1}, packed::one(70));
  for (S& x : p.q.data) x = S(4);
  for (S& x : p.k.data) x = S(-40);  // each score is -1280, where lse is rounded to 1e-4 or 2e-13
  check_against_naive(p, 1000);
}

TEST_CASE_TEMPLATE("attention has the same bits in any chunks, on any threads", S, float, double) {
  for (const variant& c : variants()) {
    problem<S> whole(c.shape, several, c.prefix, c.sinks);
    whole.run();
    for (position every : {1, 2, 3})
      for (int threads : {1, 2}) {
        problem<S> cut = whole;
        cut.run(threads, tile_edges(several, c.shape.tile, every));
        CHECK(cut.same(whole));
      }
    problem<S> shared = whole;
    shared.run(2);
    CHECK(shared.same(whole));
  }
}

// Edges of blocks, of `rows` rows or of any up to so many.
std::vector<position> memory_edges(position memory, position rows, bool ragged) {
  std::vector<position> edges{0};
  for (int i = 0; edges.back() < memory; ++i) {
    const position some = ragged ? 1 + position((noise(i, 9) + 1) / 2 * double(rows)) : rows;
    edges.push_back(std::min(memory, edges.back() + some));
  }
  return edges;
}

TEST_CASE_TEMPLATE("attention has the same bits from any blocks of memory rows", S, float, double) {
  const packed family({0, 12, 213, 213, 230, 310}, {-1, -1, 0, 1, 1});
  for (const variant& c : variants())
    for (const packed& samples : {several, family}) {
      CAPTURE(c.shape.window);
      CAPTURE(c.shape.sees_all);
      CAPTURE(c.shape.tile);
      CAPTURE(c.prefix);
      problem<S> whole(c.shape, samples, c.prefix, c.sinks);
      whole.run();
      for (const auto& [rows, ragged, chunked] :
           {std::tuple{1, false, false}, {8, false, true}, {70, true, true}, {192, false, false}}) {
        if (rows == 1 && (c.shape.sees_all || sizeof(S) == 8 || samples == family)) continue;
        CAPTURE(rows);
        problem<S> cut = whole;
        cut.run_in_blocks(tile_edges(samples, c.shape.tile, chunked ? 2 : 100),
                          memory_edges(whole.memory(), rows, ragged));
        CHECK(cut.o == whole.o);
        CHECK(cut.lse == whole.lse);
        CHECK(cut.dq == whole.dq);
        CHECK(cut.dk == whole.dk);
        CHECK(cut.dv == whole.dv);
        CHECK(cut.dsinks == whole.dsinks);
      }
    }
}

TEST_CASE("attention in blocks agrees with its formulas") {
  for (const variant& c : variants()) {
    problem<double> p(c.shape, several, c.prefix, c.sinks);
    p.run_in_blocks({0, several.tokens()}, memory_edges(p.memory(), 70, true));
    check_results(p);
  }
}

TEST_CASE_TEMPLATE("a sample's output does not depend on what it is packed with", S, float,
                   double) {
  for (const variant& c : variants()) {
    problem<S> batch(c.shape, several, c.prefix, c.sinks);
    batch.run();
    for (position s = 0; s < several.segments(); ++s) {
      const row_range own = several.segment(s);
      if (own.rows() == 0) continue;
      problem<S> alone(c.shape, packed::one(own.rows()), c.prefix, c.sinks);
      alone.q = batch.q.rows_in(own);
      for (auto [to, from] : {std::pair{&alone.k, &batch.k}, std::pair{&alone.v, &batch.v}}) {
        std::copy_n(from->data.begin(), c.prefix * from->cols, to->data.begin());
        std::copy_n(from->data.begin() + (c.prefix + own.first) * from->cols,
                    own.rows() * from->cols, to->data.begin() + c.prefix * to->cols);
      }
      alone.run();
      CHECK(alone.o == batch.o.rows_in(own));
      CHECK(alone.lse == batch.lse.rows_in(own));
    }
  }
}

TEST_CASE_TEMPLATE("later rows never change earlier outputs", S, float, double) {
  for (const variant& c : variants()) {
    if (c.shape.sees_all) continue;
    problem<S> longest(c.shape, packed::one(300), c.prefix, c.sinks);
    longest.run();
    for (position rows : {1, 7, 63, 64, 65, 100, 193, 299}) {
      problem<S> shorter(c.shape, packed::one(rows), c.prefix, c.sinks);
      shorter.run();  // random(i) fills a prefix of the same rows
      CHECK(shorter.o == longest.o.rows_in({0, rows}));
      CHECK(shorter.lse == longest.lse.rows_in({0, rows}));
    }
  }
}

TEST_CASE_TEMPLATE("attention never reads rows it does not see", S, float, double) {
  const S nan = std::numeric_limits<S>::quiet_NaN();
  for (const variant& c : variants()) {
    problem<S> clean(c.shape, several, c.prefix, c.sinks);
    // Sample 2 alone, as a chunk; the others' keys, values and gradients are poison.
    const row_range own = several.segment(2);
    const auto run = [&](problem<S>& p) {
      lent_device<S> lent(1);
      matrix<S> workspace(1, attention_workspace(p.shape), nan);
      const piece_list pieces(p.samples, own, p.prefix);
      const S* const sink = p.with_sinks ? p.sinks.data.data() : nullptr;
      attention_forward(lent.on, p.shape, pieces, view<S>(p.q).rows_in(own), p.k, p.v, sink,
                        view<S>(p.o).rows_in(own), view<S>(p.lse).rows_in(own), workspace);
      attention_backward(lent.on, p.shape, pieces, view<S>(p.q).rows_in(own), p.k, p.v, sink,
                         view<S>(p.o).rows_in(own), view<S>(p.lse).rows_in(own),
                         view<S>(p.d_o).rows_in(own), view<S>(p.dq).rows_in(own), p.dk, p.dv,
                         p.with_sinks ? p.dsinks.data.data() : nullptr, workspace);
    };
    problem<S> dirty = clean;
    std::vector<bool> seen(dirty.memory());
    for (position j = 0; j < dirty.memory(); ++j)
      seen[j] = j < c.prefix || (j >= c.prefix + own.first && j < c.prefix + own.last);
    for (matrix<S>* m : {&dirty.k, &dirty.v, &dirty.dk, &dirty.dv})
      for (position j = 0; j < m->rows; ++j)
        if (!seen[j]) std::fill_n(m->data.begin() + j * m->cols, m->cols, nan);
    run(clean);
    run(dirty);
    CHECK(dirty.o == clean.o);
    CHECK(dirty.lse == clean.lse);
    CHECK(dirty.dq == clean.dq);
    CHECK(dirty.dsinks == clean.dsinks);
    for (position j = 0; j < dirty.memory(); ++j) {
      if (!seen[j]) continue;
      CHECK(dirty.dk.rows_in({j, j + 1}) == clean.dk.rows_in({j, j + 1}));
      CHECK(dirty.dv.rows_in({j, j + 1}) == clean.dv.rows_in({j, j + 1}));
    }
  }
}

TEST_CASE_TEMPLATE("rows may lie any stride apart", S, float, double) {
  const S nan = std::numeric_limits<S>::quiet_NaN();
  for (const variant& c : variants()) {
    problem<S> tight(c.shape, several, c.prefix, c.sinks);
    tight.run();
    problem<S> p = tight;
    p.clear();
    // Each matrix in the middle of a wider one of NaN.
    std::vector<matrix<S>> wide;
    wide.reserve(9);
    const auto spread = [&](const matrix<S>& m) {
      wide.emplace_back(m.rows, m.cols + 7, nan);
      for (position i = 0; i < m.rows; ++i)
        std::copy_n(m.data.begin() + i * m.cols, m.cols, &wide.back()(i, 3));
      return view<S>(wide.back()).middle_cols(3, m.cols);
    };
    const view<S> q = spread(p.q), k = spread(p.k), v = spread(p.v), d_o = spread(p.d_o),
                  o = spread(p.o), lse = spread(p.lse), dq = spread(p.dq), dk = spread(p.dk),
                  dv = spread(p.dv);
    lent_device<S> lent(2);
    matrix<S> workspace(2, attention_workspace(c.shape) + 5, nan);
    const piece_list pieces(several, {0, several.tokens()}, c.prefix);
    const S* const sink = c.sinks ? p.sinks.data.data() : nullptr;
    attention_forward(lent.on, c.shape, pieces, q, k, v, sink, o, lse, workspace);
    attention_backward(lent.on, c.shape, pieces, q, k, v, sink, o, lse, d_o, dq, dk, dv,
                       c.sinks ? p.dsinks.data.data() : nullptr, workspace);
    const auto gather = [&](view<S> from, matrix<S>& to) {
      for (position i = 0; i < to.rows; ++i) std::copy_n(from.row(i), to.cols, &to(i, 0));
    };
    gather(o, p.o), gather(lse, p.lse), gather(dq, p.dq), gather(dk, p.dk), gather(dv, p.dv);
    CHECK(p.same(tight));
    for (const matrix<S>& m : wide)
      for (position i = 0; i < m.rows; ++i)
        for (position j : {0, 1, 2, -4, -3, -2, -1})
          if (!std::isnan(m(i, j < 0 ? m.cols + j : j))) FAIL("written between rows");
  }
}

TEST_CASE_TEMPLATE("a row whose keys all score -inf gives 0", S, float, double) {
  problem<S> p({2, 1, 8, 8, 1}, packed::one(70));
  for (S& x : p.q.data) x = 1;
  for (S& x : p.k.data) x = 1;
  p.k(0, 0) = no_score<S>;
  p.run();
  for (position e = 0; e < 16; ++e) CHECK(p.o(0, e) == 0);
  CHECK(p.lse(0, 0) == no_score<S>);
  for (position row = 1; row < 70; ++row) CHECK(std::isfinite(p.o(row, 3)));
}

// Its softmax is 1 whatever it scores.
TEST_CASE_TEMPLATE("a row that sees one key has no gradient of its score", S, float, double) {
  const packed ones({0, 1, 2, 2, 3, 40}), parent({0, 1, 2, 10}, {-1, 0, 0});
  for (variant c : variants()) {
    CAPTURE(c.shape.window);
    CAPTURE(c.shape.sees_all);
    for (const packed& samples : {ones, several, parent, packed::one(1)}) {
      if (c.prefix > 1) c.prefix = 1;
      problem<S> p(c.shape, samples, c.prefix, c.sinks);
      p.run();
      const matrix<S> given = matrix<S>::random(p.dk.rows, p.dk.cols, 6);
      for (position s = 0; s < samples.segments(); ++s) {
        const row_range own = samples.segment(s);
        const position above =
            samples.parent(s) < 0 ? 0 : samples.segment(samples.parent(s)).rows();
        bool all_one = !c.sinks;  // none of the segment's rows passes anything to its keys
        for (position row = own.first; row < own.last; ++row) {
          position keys = c.prefix + above + (c.shape.sees_all ? own.rows() : row - own.first + 1);
          if (c.shape.window > 0) keys = std::min(keys, c.shape.window);
          const bool one = keys == 1 && !c.sinks;
          all_one &= one;
          bool zeros = true;
          for (position j = 0; j < p.dq.cols; ++j) zeros &= p.dq(row, j) == 0;
          CHECK(zeros == one);
        }
        if (all_one && own.rows() > 0 && samples.parent_number(s) < 0)
          CHECK(p.dk.rows_in({c.prefix + own.first, c.prefix + own.last}) ==
                given.rows_in({c.prefix + own.first, c.prefix + own.last}));
      }
    }
  }
}

TEST_CASE("attention counts the pairs that are seen") {
  for (const variant& c : variants()) {
    problem<double> p(c.shape, several, c.prefix, c.sinks);
    const position pairs = p.naive(), kw = c.shape.key_width, vw = c.shape.value_width;
    device<double> on;
    big_count forward, backward;
    const auto edges = tile_edges(several, c.shape.tile, 2);
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const piece_list pieces(several, {edges[i], edges[i + 1]}, c.prefix);
      const auto shaped = [&](position rows, position cols) {
        return view<double>(nullptr, rows, cols);
      };
      const position rows = pieces.rows().rows(), all = several.tokens() + c.prefix;
      const auto q = shaped(rows, c.shape.heads * kw), o = shaped(rows, c.shape.heads * vw),
                 lse = shaped(rows, c.shape.heads), k = shaped(all, c.shape.kv_heads * kw),
                 v = shaped(all, c.shape.kv_heads * vw),
                 workspace = shaped(1, attention_workspace(c.shape));
      on.reset_flops();
      attention_forward(on, c.shape, pieces, q, k, v, nullptr, o, lse, workspace);
      forward += on.flops();
      on.reset_flops();
      attention_backward(on, c.shape, pieces, q, k, v, nullptr, o, lse, o, q, k, v, nullptr,
                         workspace);
      backward += on.flops();
    }
    CHECK(forward == 2 * pairs * c.shape.heads * (kw + vw));
    CHECK(backward == 2 * pairs * c.shape.heads * (3 * kw + 2 * vw));
  }
}
