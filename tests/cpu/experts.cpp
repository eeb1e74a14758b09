#include <streambp/cpu/experts.hpp>

#include <doctest/doctest.h>

#include <memory>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 53;
const std::vector<position> grains{0, 7, 16, 17, 40, 53};

// With packing buffers of its own.
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

// Choices by a rule: copies of one row go to different experts, and the last expert gets none when
// `leaves_out`.
template <class S>
guarded<S> choices(position experts, position top, bool leaves_out) {
  const position used = experts - leaves_out;
  guarded<S> chosen(rows, top);
  for (position i = 0; i < rows; ++i)
    for (position j = 0; j < top; ++j) chosen(i, j) = S((i * i + 3 * i + j) % used);
  return chosen;
}

// y = Σ_j weight_j w_e x and its gradients, without an expert's function between.
template <class S>
struct mixture_run {
  guarded<S> y, dx, dw, dweights;
  mixture_run(position in, position out, position experts, position top)
      : y(rows, out, 5, 1., 0.),
        dx(rows, in, 6, 1., 0.),
        dw(experts * out, in, 7, 1., 0.),
        dweights(rows, top) {}
};

template <class S>
struct mixture_input {
  guarded<S> x, w, weights, dy, chosen;
  position experts;
  mixture_input(position in, position out, position experts, position top, bool leaves_out,
                position skew = 1)
      : x(rows, in, 1, 1., 0., skew),
        w(experts * out, in, 2, 1., 0., skew),
        weights(rows, top, 3, 0.4, 0.5, skew),
        dy(rows, out, 4, 1., 0., skew),
        chosen(choices<S>(experts, top, leaves_out)),
        experts(experts) {}
};

// Chunks are runs of grains; `edges` are their places in `grains`.
template <class S>
mixture_run<S> run(int threads, const mixture_input<S>& in, const std::vector<std::size_t>& edges) {
  const position d = (*in.x).cols, out = (*in.dy).cols, top = (*in.chosen).cols;
  mixture_run<S> r(d, out, in.experts, top);
  lent_device<S> lent(threads);
  auto& on = lent.on;
  for (std::size_t c = edges.size(); c-- > 1;) {
    const auto own_grains = std::span(grains).subspan(edges[c - 1], edges[c] - edges[c - 1] + 1);
    const row_range own{own_grains.front(), own_grains.back()};
    const position copies = own.rows() * top;
    guarded<S> place(own.rows(), top), first(1, in.experts + 1);
    guarded<S> xs(copies, d), ys(copies, out), dys(copies, out), dxs(copies, d);
    const auto part = [&](const guarded<S>& g) { return (*g).rows_in(own); };
    order_by_expert(on, part(in.chosen), in.experts, *place, *first);
    CHECK(position(first(0, in.experts)) == copies);
    copy_to_experts(on, part(in.x), *place, {}, *xs);
    project_experts(on, *first, in.experts, *xs, *in.w, *ys);
    add_from_experts(on, *ys, *place, part(in.weights), part(r.y));
    dot_with_experts(on, *ys, *place, part(in.dy), part(r.dweights));
    copy_to_experts(on, part(in.dy), *place, part(in.weights), *dys);
    add_expert_gradients(on, *first, in.experts, part(in.chosen), *dys, *xs, *r.dw, own_grains);
    project_back_experts(on, *first, in.experts, *dys, *in.w, *dxs, write::assign);
    add_from_experts(on, *dxs, *place, {}, part(r.dx));
    for (const auto* g : {&place, &first, &xs, &ys, &dys, &dxs}) CHECK(g->intact());
  }
  for (const auto* g : {&r.y, &r.dx, &r.dw, &r.dweights}) CHECK(g->intact());
  return r;
}

template <class S>
bool same(const mixture_run<S>& a, const mixture_run<S>& b) {
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dw, b.dw) &&
         same_bits(a.dweights, b.dweights);
}

template <class F>
void each_shape(const F& f) {
  for (const position experts : {1, 3, 8})
    for (const position top : {position(1), position(2), experts})
      for (const auto& [in, out] : {std::pair<position, position>{17, 5}, {16, 32}, {1, 1}})
        for (const bool leaves_out : {false, true})
          if (top <= experts - leaves_out) f(in, out, experts, top, leaves_out);
}

}  // namespace

TEST_CASE("experts: each copy has one place, by expert and then by row") {
  for (const bool leaves_out : {false, true}) {
    const guarded<float> chosen = choices<float>(5, 3, leaves_out);
    guarded<float> place(rows, 3), first(1, 6);
    device<float> on(1);
    order_by_expert(on, *chosen, 5, *place, *first);
    std::vector<std::pair<position, position>> at(rows * 3, {-1, -1});  // expert, row
    for (position i = 0; i < rows; ++i)
      for (position j = 0; j < 3; ++j) at[std::size_t(place(i, j))] = {position(chosen(i, j)), i};
    CHECK(std::is_sorted(at.begin(), at.end()));
    CHECK(at.front().first == 0);  // none was left empty
    for (position e = 0; e <= 5; ++e)
      CHECK(position(first(0, e)) ==
            std::count_if(at.begin(), at.end(), [&](const auto& a) { return a.first < e; }));
    CHECK(place.intact());
    CHECK(first.intact());
  }
}

TEST_CASE_TEMPLATE("experts: values, and bits over chunks, threads and places", S, float, double) {
  each_shape([&](position in, position out, position experts, position top, bool leaves_out) {
    const mixture_input<S> given(in, out, experts, top, leaves_out);
    const mixture_input<S> moved(in, out, experts, top, leaves_out, 4);
    const auto once = run<S>(1, given, {0, 5});
    const mixture_run<S> before(in, out, experts, top);
    CHECK(same(once, run<S>(2, moved, {0, 1, 2, 3, 4, 5})));
    CHECK(same(once, run<S>(2, given, {0, 2, 5})));

    const auto copy = [&](position i, position j, position o) {  // (w_e x)_o
      const position e = position(given.chosen(i, j));
      double sum = 0;
      for (position k = 0; k < in; ++k)
        sum += double(given.w(e * out + o, k)) * double(given.x(i, k));
      return sum;
    };
    const double room = tight<S> * 20;
    CHECK(error_of(*once.y, [&](position i, position o) {
            double sum = double(before.y(i, o));
            for (position j = 0; j < top; ++j) sum += double(given.weights(i, j)) * copy(i, j, o);
            return sum;
          }) < room);
    CHECK(error_of(*once.dweights, [&](position i, position j) {
            double sum = 0;
            for (position o = 0; o < out; ++o) sum += double(given.dy(i, o)) * copy(i, j, o);
            return sum;
          }) < room);
    CHECK(error_of(*once.dx, [&](position i, position k) {
            double sum = double(before.dx(i, k));
            for (position j = 0; j < top; ++j)
              for (position o = 0; o < out; ++o)
                sum += double(given.weights(i, j)) * double(given.dy(i, o)) *
                       double(given.w(position(given.chosen(i, j)) * out + o, k));
            return sum;
          }) < room);
    CHECK(error_of(*once.dw, [&](position row, position k) {
            double sum = double(before.dw(row, k));
            for (position i = 0; i < rows; ++i)
              for (position j = 0; j < top; ++j)
                if (position(given.chosen(i, j)) == row / out)
                  sum += double(given.weights(i, j)) * double(given.dy(i, row % out)) *
                         double(given.x(i, k));
            return sum;
          }) < room);
  });
}

TEST_CASE_TEMPLATE("experts: one without rows keeps its gradient's bits", S, float, double) {
  const mixture_input<S> given(17, 5, 4, 2, true);
  const auto r = run<S>(1, given, {0, 5});
  const mixture_run<S> before(17, 5, 4, 2);
  const row_range last{15, 20};
  CHECK(same_bits<S>((*r.dw).rows_in(last), (*before.dw).rows_in(last)));
  CHECK(!same_bits(r.dw, before.dw));
}

TEST_CASE("experts: FLOPs of views without data are those of the products") {
  const mixture_input<float> given(17, 5, 3, 2, false);
  const auto r = run<float>(1, given, {0, 5});
  device<float> counts;
  const position n = rows * 2;
  const auto shape = [](position a, position b) { return view<float>{nullptr, a, b}; };
  project_experts(counts, shape(1, 4), 3, shape(n, 17), shape(15, 17), shape(n, 5));
  project_back_experts(counts, shape(1, 4), 3, shape(n, 5), shape(15, 17), shape(n, 17),
                       write::add);
  add_expert_gradients(counts, shape(1, 4), 3, shape(rows, 2), shape(n, 5), shape(n, 17),
                       shape(15, 17), grains);
  CHECK(counts.flops() == 3 * 2 * n * 17 * 5);

  lent_device<float> lent(1);
  guarded<float> place(rows, 2), first(1, 4), xs(n, 17), ys(n, 5);
  order_by_expert(lent.on, *given.chosen, 3, *place, *first);
  copy_to_experts(lent.on, *given.x, *place, {}, *xs);
  project_experts(lent.on, *first, 3, *xs, *given.w, *ys);
  CHECK(lent.on.flops() == 2 * n * 17 * 5);
}

TEST_CASE("experts: more copies than a scalar counts are refused") {
  device<float> on(1);
  const position many = (position(1) << 23) + 1;
  const view<float> chosen(nullptr, many, 2), first(nullptr, 1, 4);
  CHECK_THROWS_WITH_AS(
      order_by_expert(on, chosen, 3, chosen, first),
      "experts: a chunk of 8388609 rows and 2 copies each; at most 16777216 copies can be "
      "numbered, so plan smaller chunks",
      shape_error);
}
