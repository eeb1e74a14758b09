#include <streambp/cpu/linear_attention.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <memory>

#include "carried.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 301;
// A prompt of several runs with two completions, one row alone, an empty sample and the rest.
const packed samples({0, 150, 151, 151, 190, 210, rows}, {-1, -1, -1, 0, 0, -1});

enum class decay { none, gentle, mixed, abrupt, infinite };

// Logarithms. Abrupt: two tokens in seven forget all but e^-10000 of it; infinite: all, and it is
// not told by how much.
double logarithm(decay kind, position t, position h) {
  const double w = wave(t, h, 9);
  switch (kind) {
    case decay::none:
      return 0;
    case decay::gentle:
      return -0.01 * (1 + w);
    case decay::mixed:
      return -4 * (1 + w);
    case decay::abrupt:
      return t % 7 < 2 ? -1e4 : -1e-3 * (1 + w);
    case decay::infinite:
      if (t % 7 < 2) return -std::numeric_limits<double>::infinity();
      return t % 7 == 4 ? -3e38 : t % 7 == 5 ? 0 : -1e-3 * (1 + w);
  }
  return 0;
}

template <class S>
struct attention_input {
  linear_attention_shape shape;
  guarded<S> q, k, v, la, d_o, initial;
  attention_input(linear_attention_shape s, decay kind, position skew = 1)
      : shape(s),
        q(rows, s.key_heads * s.key_width, 1, 1., 0.1, skew),
        k(rows, s.key_heads * s.key_width, 2, 1., 0.1, skew),
        v(rows, s.heads * s.value_width, 3, 1., 0., skew),
        la(rows, s.heads, skew),
        d_o(rows, s.heads * s.value_width, 4, 1., 0., skew),
        initial(1, s.state(), 5, 1., 0., skew) {
    for (position t = 0; t < rows; ++t)
      for (position h = 0; h < s.heads; ++h) la(t, h) = S(logarithm(kind, t, h));
  }
};

template <class S>
struct attention_run {
  guarded<S> o, dq, dk, dv, dla, dinitial;
};

template <class S>
attention_run<S> run(int threads, const attention_input<S>& in,
                     const std::vector<position>& edges) {
  const linear_attention_shape& shape = in.shape;
  const position keys = shape.heads * shape.key_width, values = shape.heads * shape.value_width;
  attention_run<S> r{{rows, values},    {rows, keys, 2},        {rows, keys, 3},
                     {rows, values, 4}, {rows, shape.heads, 5}, {1, shape.state(), 6, 1., 0.}};
  device<S> on(threads);
  std::vector<std::byte> packing(device<S>::packing_bytes(threads) + 64);
  on.lend(packing.data() + (64 - reinterpret_cast<std::size_t>(packing.data()) % 64));
  carried<S> states(samples, edges, shape.state(), *in.initial, *r.dinitial);
  std::vector<S> workspace(std::size_t(threads * linear_attention_workspace(shape)), S(-77));
  const view<S> tiles(workspace.data(), threads, linear_attention_workspace(shape));
  std::vector<std::vector<S>> kept(edges.size());
  const auto kept_of = [&](position c) {
    const position n = states.rows(c).rows(), cols = shape.kept_columns();
    kept[std::size_t(c)].resize(std::size_t(n * cols), S(-77));
    return view<S>(kept[std::size_t(c)].data(), n, cols);
  };
  for (position c = 0; c < states.chunks(); ++c) {
    const row_range own = states.rows(c);
    linear_attention_forward(on, shape, states.pieces(c), states.at(c), (*in.q).rows_in(own),
                             (*in.k).rows_in(own), (*in.v).rows_in(own), (*in.la).rows_in(own),
                             (*r.o).rows_in(own), kept_of(c), tiles);
  }
  for (position c = states.chunks(); c-- > 0;) {
    const row_range own = states.rows(c);
    linear_attention_backward(on, shape, states.pieces(c), states.at(c), (*in.q).rows_in(own),
                              (*in.k).rows_in(own), (*in.v).rows_in(own), (*in.la).rows_in(own),
                              (*in.d_o).rows_in(own), (*r.dq).rows_in(own), (*r.dk).rows_in(own),
                              (*r.dv).rows_in(own), (*r.dla).rows_in(own), kept_of(c), tiles);
  }
  CHECK(states.intact());
  for (const auto* m : {&r.o, &r.dq, &r.dk, &r.dv, &r.dla, &r.dinitial}) CHECK(m->intact());
  return r;
}

// Token by token in double.
attention_run<double> naive(const attention_input<double>& in) {
  const linear_attention_shape& s = in.shape;
  const position keys = s.heads * s.key_width, values = s.heads * s.value_width, n = s.head_state();
  attention_run<double> r{{rows, values}, {rows, keys},    {rows, keys},
                          {rows, values}, {rows, s.heads}, {1, s.state(), 6, 1., 0.}};
  const auto before = [&](position t) {  // the row whose state t starts from; -1: the initial state
    const position segment = samples.segment_at(t), parent = samples.parent(segment);
    if (t > samples.segment(segment).first) return t - 1;
    return parent < 0 ? position(-1) : samples.segment(parent).last - 1;
  };
  for (position h = 0; h < s.heads; ++h) {
    const position hk = h / s.group() * s.key_width, hq = h * s.key_width, hv = h * s.value_width;
    const double* initial = (*in.initial).data + h * n;
    std::vector<std::vector<double>> state(rows), slope(rows, std::vector<double>(std::size_t(n)));
    const auto each = [&](const auto& f) {
      for (position i = 0; i < s.key_width; ++i)
        for (position j = 0; j < s.value_width; ++j) f(i, j, std::size_t(i * s.value_width + j));
    };
    const auto entry_before = [&](position t, std::size_t e) {
      return before(t) < 0 ? initial[e] : state[std::size_t(before(t))][e];
    };
    for (position t = 0; t < rows; ++t) {
      state[std::size_t(t)].resize(std::size_t(n));
      for (position j = 0; j < s.value_width; ++j) r.o(t, hv + j) = 0;
      each([&](position i, position j, std::size_t e) {
        double& x = state[std::size_t(t)][e];
        x = std::exp(in.la(t, h)) * entry_before(t, e) + in.k(t, hk + i) * in.v(t, hv + j);
        r.o(t, hv + j) += s.scale * x * in.q(t, hk + i);
      });
    }
    for (position t = rows; t-- > 0;) {
      for (position i = 0; i < s.key_width; ++i) r.dq(t, hq + i) = r.dk(t, hq + i) = 0;
      for (position j = 0; j < s.value_width; ++j) r.dv(t, hv + j) = 0;
      r.dla(t, h) = 0;
      each([&](position i, position j, std::size_t e) {
        double& d = slope[std::size_t(t)][e];
        d += s.scale * in.q(t, hk + i) * in.d_o(t, hv + j);
        r.dq(t, hq + i) += s.scale * state[std::size_t(t)][e] * in.d_o(t, hv + j);
        r.dk(t, hq + i) += d * in.v(t, hv + j);
        r.dv(t, hv + j) += d * in.k(t, hk + i);
        const double passed = std::exp(in.la(t, h)) * d;
        r.dla(t, h) += passed * entry_before(t, e);
        (before(t) < 0 ? r.dinitial(0, h * n + position(e)) : slope[std::size_t(before(t))][e]) +=
            passed;
      });
    }
  }
  return r;
}

const linear_attention_shape shapes[] = {{2, 2, 6, 10, 0.3, 8},
                                         {3, 1, 5, 17, 1, 16},  // heads share q and k
                                         {4, 2, 16, 3, 0.5, 32},
                                         {1, 1, 1, 1, 1, 64},
                                         {1, 1, 33, 40, 0.2, 64}};

template <class S, class F>
void with_each(const attention_run<S>& a, const F& f) {
  int name = 0;
  for (const auto& m : {&a.o, &a.dq, &a.dk, &a.dv, &a.dla, &a.dinitial}) f(*m, name++);
}

}  // namespace

TEST_CASE_TEMPLATE("linear attention: the recurrence's values and gradients under every decay", S,
                   float, double) {
  for (const auto& shape : shapes)
    for (const decay kind :
         {decay::none, decay::gentle, decay::mixed, decay::abrupt, decay::infinite}) {
      CAPTURE(&shape - shapes);
      CAPTURE(int(kind));
      const auto ours = run<S>(1, attention_input<S>(shape, kind), {0, rows});
      const auto right = naive(attention_input<double>(shape, kind));
      const guarded<double>* of[] = {&right.o,  &right.dq,  &right.dk,
                                     &right.dv, &right.dla, &right.dinitial};
      with_each(ours, [&](const guarded<S>& m, int name) {
        CAPTURE(name);
        // Sums of hundreds of terms where nothing is forgotten.
        CHECK(error_of(*m, [&](position i, position j) { return (*of[name])(i, j); }) <
              (sizeof(S) == 4 ? 2e-5 : 1e-13));
      });
    }
}

TEST_CASE_TEMPLATE("linear attention: the same bits in any chunks, places and threads", S, float,
                   double) {
  for (const auto& shape : shapes) {
    CAPTURE(&shape - shapes);
    const auto once = run<S>(1, attention_input<S>(shape, decay::mixed), {0, rows});
    std::vector<position> all{0}, some{0};  // tile edges: each, and every third
    for (position s = 0; s < samples.segments(); ++s)
      for (position row = samples.segment(s).first; row < samples.segment(s).last;
           row += shape.tile) {
        if (row > 0) all.push_back(row);
        if (all.size() % 3 == 0) some.push_back(row);
      }
    all.push_back(rows);
    some.push_back(rows);
    for (const auto& edges : {all, some}) {
      const auto again = run<S>(2, attention_input<S>(shape, decay::mixed, 5), edges);
      const guarded<S>* of[] = {&again.o,  &again.dq,  &again.dk,
                                &again.dv, &again.dla, &again.dinitial};
      with_each(once, [&](const guarded<S>& m, int name) {
        CAPTURE(name);
        CHECK(same_bits(m, *of[name]));
      });
    }
  }
}

TEST_CASE("linear attention: gradients may stand where values do") {
  const linear_attention_shape shape{2, 2, 6, 10, 0.3, 16};
  const attention_input<double> in(shape, decay::mixed);
  const auto apart = run<double>(1, in, {0, rows});
  device<double> on(1);
  std::vector<std::byte> packing(device<double>::packing_bytes(1) + 64);
  on.lend(packing.data() + (64 - reinterpret_cast<std::size_t>(packing.data()) % 64));
  carried<double> states(samples, {0, rows}, shape.state(), *in.initial, *in.initial);
  guarded<double> q = in.q, k = in.k, v = in.v, la = in.la, o(rows, 20);
  std::vector<double> workspace(std::size_t(linear_attention_workspace(shape)));
  std::vector<double> kept(std::size_t(rows * shape.kept_columns()));
  const view<double> tiles(workspace.data(), 1, position(workspace.size())),
      keeps(kept.data(), rows, shape.kept_columns());
  states.d_initial = {};
  linear_attention_forward(on, shape, states.pieces(0), states.at(0), *q, *k, *v, *la, *o, keeps,
                           tiles);
  linear_attention_backward(on, shape, states.pieces(0), states.at(0), *q, *k, *v, *la, *in.d_o, *q,
                            *k, *v, *la, keeps, tiles);
  CHECK(same_bits(q, apart.dq));
  CHECK(same_bits(k, apart.dk));
  CHECK(same_bits(v, apart.dv));
  CHECK(same_bits(la, apart.dla));
}

TEST_CASE("linear attention: shared keys' gradients are sums over the group") {
  const linear_attention_shape shape{6, 2, 3, 1};
  const guarded<float> x(9, 18, 1, 1., 0.);
  guarded<float> y(9, 6);
  device<float> on(2);
  sum_over_group(on, shape, *x, *y);
  CHECK(y.intact());
  CHECK(error_of(*y, [&](position i, position j) {
          double sum = 0;
          for (position h = 0; h < 3; ++h) sum += double(x(i, j / 3 * 9 + h * 3 + j % 3));
          return sum;
        }) < tight<float>);
}
