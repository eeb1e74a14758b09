#include <streambp/cpu/norm.hpp>

#include <doctest/doctest.h>

#include "guarded.hpp"

using namespace streambp;
using namespace streambp::cpu;

namespace {

constexpr position rows = 30;
const std::vector<position> edges{0, 5, 12, 13, rows};

// Everything that a norm writes, computed in the given chunks.
template <class S>
struct norm_run {
  guarded<S> y, statistics, dx, dgain, dbias;
};

template <class S>
norm_run<S> run(bool layer, int threads, const std::vector<std::size_t>& chunks,
                const guarded<S>& x, const guarded<S>& dy, view<const S> gain, view<const S> bias,
                double offset, position skew = 1) {
  const position d = (*x).cols;
  norm_run<S> r{{rows, d, skew},
                {rows, layer ? 2 : 1, skew},
                {rows, d, 5, 1., 0., skew},
                {1, d, 6, 1., 0., skew},
                {1, d, 7, 1., 0., skew}};
  device<S> on(threads);
  for (std::size_t c = chunks.size() - 1; c-- > 0;) {
    const row_range own{edges[chunks[c]], edges[chunks[c + 1]]};
    const auto grains = std::span(edges).subspan(chunks[c], chunks[c + 1] - chunks[c] + 1);
    const auto in = [&](const guarded<S>& m) { return (*m).rows_in(own); };
    const view<S> none, dgain = gain.data ? *r.dgain : none, dbias = bias.data ? *r.dbias : none;
    if (layer) {
      layer_norm_forward(on, in(x), gain, bias, 1e-3, in(r.y), in(r.statistics), offset);
      layer_norm_backward(on, in(x), gain, in(r.statistics), in(dy), in(r.dx), dgain, dbias, grains,
                          offset);
    } else {
      rms_norm_forward(on, in(x), gain, 1e-3, in(r.y), in(r.statistics), offset);
      rms_norm_backward(on, in(x), gain, in(r.statistics), in(dy), in(r.dx), dgain, grains, offset);
    }
  }
  return r;
}

// y of one row in long double.
template <class S>
std::vector<double> naive(bool layer, const S* x, const S* gain, const S* bias, position d,
                          double offset) {
  long double mean = 0, square = 0;
  if (layer)
    for (position j = 0; j < d; ++j) mean += x[j] / (long double)(d);
  for (position j = 0; j < d; ++j) square += (x[j] - mean) * (x[j] - mean) / (long double)(d);
  std::vector<double> y(static_cast<std::size_t>(d));
  for (position j = 0; j < d; ++j)
    y[std::size_t(j)] =
        double((x[j] - mean) / std::sqrt(square + 1e-3L) * (gain ? offset + gain[j] : 1) +
               (bias ? bias[j] : 0));
  return y;
}

// Against the same in long double, whose squares have room.
template <class S>
void check_size(bool layer, S size, double epsilon = 1e-5) {
  constexpr position d = 11;
  std::vector<S> x(d), dy(d), y(d), dx(d), statistics(2);
  for (position j = 0; j < d; ++j) {
    x[std::size_t(j)] = size * S(std::sin(double(3 * j + 1)));
    dy[std::size_t(j)] = S(std::cos(double(5 * j)));
  }
  device<S> on(1);
  const auto row = [](std::vector<S>& v) { return view<S>(v.data(), 1, position(v.size())); };
  const view<S> r(statistics.data() + (layer ? 1 : 0), 1, 1), none;
  const std::vector<position> grains{0, 1};
  if (layer) {
    layer_norm_forward(on, row(x), none, none, epsilon, row(y), row(statistics));
    layer_norm_backward(on, row(x), none, row(statistics), row(dy), row(dx), none, none, grains);
  } else {
    rms_norm_forward(on, row(x), none, epsilon, row(y), r);
    rms_norm_backward(on, row(x), none, r, row(dy), row(dx), none, grains);
  }
  long double mean = 0, squares = 0, mean_dy = 0, dot = 0;
  for (position j = 0; j < d && layer; ++j) mean += (long double)(x[std::size_t(j)]) / d;
  for (const S v : x) squares += (v - mean) * (v - mean) / d;
  const long double inverse = 1 / std::sqrt(squares + (long double)(epsilon));
  for (position j = 0; j < d; ++j) {
    if (layer) mean_dy += (long double)(dy[std::size_t(j)]) / d;
    dot += dy[std::size_t(j)] * (x[std::size_t(j)] - mean) * inverse / d;
  }
  const double near = sizeof(S) == 4 ? 4e-6 : 1e-14;
  for (position j = 0; j < d; ++j) {
    const auto k = std::size_t(j);
    const long double z = (x[k] - mean) * inverse, slope = dy[k] - mean_dy - z * dot;
    CHECK(std::abs(double(y[k] - z)) <= near);
    CHECK(std::abs(double(dx[k] / inverse - slope)) <= near);
  }
}

}  // namespace

TEST_CASE("rows whose squares overflow are normalised like others") {
  for (const bool layer : {false, true}) {
    CAPTURE(layer);
    for (const float size : {1.f, 1e12f, 1e18f, 1e19f, 3e19f, 1e25f, 1e30f, 1e36f}) {
      CAPTURE(size);
      check_size(layer, size);
    }
    for (const double size : {1., 1e100, 1e110, 1e153, 1e155, 1e200, 1e300}) {
      CAPTURE(size);
      check_size(layer, size);
    }
  }
}

TEST_CASE("without an epsilon tiny rows are normalised like others, too") {
  for (const bool layer : {false, true}) {
    CAPTURE(layer);
    for (const float size : {1.f, 1e-5f, 1e-12f, 1e-14f, 1e-18f, 1e-21f, 1e-25f, 1e-36f}) {
      CAPTURE(size);
      check_size(layer, size, 0);
      if (size > 1e-18f) check_size(layer, size, double(size) * double(size));
    }
    for (const double size : {1e-100, 1e-110, 1e-150, 1e-160, 1e-300}) {
      CAPTURE(size);
      check_size(layer, size, 0);
    }
  }
}

TEST_CASE_TEMPLATE("without an epsilon a row of zeros gives the bias, and passes nothing back", S,
                   float, double) {
  const S least = std::numeric_limits<S>::denorm_min();
  for (const S entry : {S(0), -S(0), least}) {
    constexpr position d = 21;
    const std::vector<S> x(d, entry), dy(d, S(3)), gain(d, S(2)), bias(d, S(0.25));
    std::vector<S> y(d, S(7)), dx(d, S(5)), statistics(2), dgain(d, S(1)), dbias(d, S(1));
    device<S> on(1);
    const auto row = [](auto& v) { return view(v.data(), 1, position(v.size())); };
    const view<S> r(statistics.data(), 1, 1);
    const std::vector<position> grains{0, 1};
    rms_norm_forward(on, row(x), row(gain), 0, row(y), r);
    rms_norm_backward(on, row(x), row(gain), r, row(dy), row(dx), row(dgain), grains);
    CHECK(y == std::vector<S>(d, 0));
    CHECK(dx == std::vector<S>(d, 5));
    CHECK(dgain == std::vector<S>(d, 1));
    layer_norm_forward(on, row(x), row(gain), row(bias), 0, row(y), row(statistics));
    layer_norm_backward(on, row(x), row(gain), row(statistics), row(dy), row(dx), row(dgain),
                        row(dbias), grains);
    CHECK(y == bias);
    CHECK(dx == std::vector<S>(d, 5));
    CHECK(dgain == std::vector<S>(d, 1));
    CHECK(dbias == std::vector<S>(d, 4));
  }
}

TEST_CASE_TEMPLATE("norms: values, and bits in any chunks, places and threads", S, float, double) {
  for (bool layer : {false, true})
    for (position d : widths)
      for (bool with_gain : {true, false}) {
        const double offset = with_gain && d == 50 ? 1 : 0;
        const guarded<S> x(rows, d, 1, 1, 0.3), dy(rows, d, 2, 1, 0), gain(1, d, 3, 0.5, 1),
            bias(1, d, 4, 1, 0);
        const guarded<S> x5(rows, d, 1, 1, 0.3, 5), dy5(rows, d, 2, 1, 0, 4);
        const view<const S> g = with_gain ? *gain : view<S>(), b = with_gain ? *bias : view<S>();
        const auto once = run<S>(layer, 1, {0, 4}, x, dy, g, b, offset);
        CHECK(error_of(*once.y, [&](position i, position j) {
                return naive(layer, (*x).row(i), g.data, layer ? b.data : nullptr, d,
                             offset)[std::size_t(j)];
              }) < 4 * tight<S>);
        for (int threads : {1, 2}) {
          const auto again = run<S>(layer, threads, {0, 1, 3, 4}, x5, dy5, g, b, offset, 2);
          CHECK(same_bits(once.y, again.y));
          CHECK(same_bits(once.statistics, again.statistics));
          CHECK(same_bits(once.dx, again.dx));
          CHECK(same_bits(once.dgain, again.dgain));
          CHECK(same_bits(once.dbias, again.dbias));
          CHECK(again.y.intact());
          CHECK(again.statistics.intact());
          CHECK(again.dx.intact());
          CHECK(again.dgain.intact());
        }
      }
}

TEST_CASE("norms: gradients are the slopes, added") {
  for (bool layer : {false, true})
    for (position d : {3, 17, 50}) {
      guarded<double> x(rows, d, 1, 1, 0.3), dy(rows, d, 2, 1, 0), gain(1, d, 3, 0.5, 1),
          bias(1, d, 4, 1, 0);
      const auto r = run<double>(layer, 1, {0, 4}, x, dy, *gain, *bias, 0.25);
      const guarded<double> dx_before(rows, d, 5, 1., 0.), dgain_before(1, d, 6, 1., 0.),
          dbias_before(1, d, 7, 1., 0.);
      const auto loss_of_row = [&](position i) {
        double loss = 0;
        const auto y =
            naive(layer, (*x).row(i), (*gain).data, layer ? (*bias).data : nullptr, d, 0.25);
        for (position j = 0; j < d; ++j) loss += dy(i, j) * y[std::size_t(j)];
        return loss;
      };
      const auto loss = [&] {
        double total = 0;
        for (position i = 0; i < rows; ++i) total += loss_of_row(i);
        return total;
      };
      CHECK(error_of(*r.dx, [&](position i, position j) {
              return dx_before(i, j) + slope(x(i, j), [&] { return loss_of_row(i); });
            }) < 1e-8);
      CHECK(error_of(*r.dgain, [&](position, position j) {
              return dgain_before(0, j) + slope(gain(0, j), loss);
            }) < 1e-8);
      if (layer)
        CHECK(error_of(*r.dbias, [&](position, position j) {
                return dbias_before(0, j) + slope(bias(0, j), loss);
              }) < 1e-8);
    }
}

TEST_CASE("norms: float gradients agree with double ones") {
  for (bool layer : {false, true})
    for (position d : widths) {
      const guarded<double> x(rows, d, 1, 1, 0.3), dy(rows, d, 2, 1, 0), gain(1, d, 3, 0.5, 1),
          bias(1, d, 4, 1, 0);
      const guarded<float> fx(rows, d, 1, 1, 0.3), fdy(rows, d, 2, 1, 0), fgain(1, d, 3, 0.5, 1),
          fbias(1, d, 4, 1, 0);
      const auto right = run<double>(layer, 1, {0, 4}, x, dy, *gain, *bias, 0);
      const auto ours = run<float>(layer, 1, {0, 4}, fx, fdy, *fgain, *fbias, 0);
      const auto at = [](const guarded<double>& m) {
        return [&](position i, position j) { return m(i, j); };
      };
      CHECK(error_of(*ours.dx, at(right.dx)) < 1e-5);
      CHECK(error_of(*ours.dgain, at(right.dgain)) < 1e-5);
      CHECK(error_of(*ours.dbias, at(right.dbias)) < 1e-5);
    }
}

TEST_CASE("norms: dx may be dy") {
  guarded<double> x(rows, 17, 1, 1, 0), dy(rows, 17, 2, 1, 0), gain(1, 17, 3, 0.5, 1), y(rows, 17),
      r(rows, 1);
  device<double> on(1);
  rms_norm_forward(on, *x, *gain, 1e-3, *y, *r);
  guarded<double> apart = dy, dgain(1, 17, 4, 1, 0), dgain_apart = dgain;
  rms_norm_backward(on, *x, *gain, *r, *dy, *apart, *dgain_apart, edges);
  rms_norm_backward(on, *x, *gain, *r, *dy, *dy, *dgain, edges);
  CHECK(same_bits(apart, dy));
  CHECK(same_bits(dgain_apart, dgain));
}
