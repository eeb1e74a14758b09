// Moments of each feature over a segment's tokens, and the normalisation by them.
#pragma once

#include "../core/packed.hpp"
#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

template <device D>
void expect_time_norm(const char* primitive, const piece_list& pieces, given<D> x,
                      given<D> moments) {
  expect_pieces(primitive, pieces, "x", x);
  expect_shape(primitive, "moments", moments, {"segments", pieces.samples().segments()},
               {"2 columns", 2 * x.cols});
}

}  // namespace detail

// moments (segments, 2 d), 0 before a segment's first row: means, and sums of squares around them
// or, where those overflow, minus their roots. Joined tile by tile, tiles counted from the
// segment's start.
template <device D>
void add_time_moments(D& on, const piece_list& pieces, position tile, given<D> x,
                      written<D> moments) {
  detail::expect_time_norm<D>("add_time_moments", pieces, x, moments);
  if (const auto with = on.enter("add_time_moments"))
    add_time_moments(*with, pieces, tile, x, moments);
}

template <device D>
void time_norm_forward(D& on, const piece_list& pieces, given<D> x, given<D> moments, given<D> gain,
                       given<D> bias, double epsilon, written<D> y) {
  constexpr auto name = "time_norm_forward";
  detail::expect_time_norm<D>(name, pieces, x, moments);
  expect_shape(name, "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_shape(name, "bias", bias, {"one", 1}, {"columns", x.cols});
  expect_alike(name, "y", y, x);
  if (const auto with = on.enter("time_norm_forward"))
    time_norm_forward(*with, pieces, x, moments, gain, bias, epsilon, y);
}

// dz = dy ∘ gain: dx += inverse dz, dmoments (segments, 2 d) += Σ dz, Σ dz ∘ z, last tile first;
// dgain += Σ dy ∘ z, dbias += Σ dy, unless without rows.
template <device D>
void time_norm_backward(D& on, const piece_list& pieces, position tile, given<D> x,
                        given<D> moments, given<D> gain, double epsilon, given<D> dy, written<D> dx,
                        written<D> dmoments, written<D> dgain, written<D> dbias) {
  constexpr auto name = "time_norm_backward";
  detail::expect_time_norm<D>(name, pieces, x, moments);
  expect_shape(name, "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_alike(name, "dy", dy, x);
  expect_alike(name, "dx", dx, x);
  expect_alike(name, "dmoments", dmoments, moments);
  expect_shape_if_any(name, "dgain", dgain, {"one", 1}, {"columns", x.cols});
  expect_shape_if_any(name, "dbias", dbias, {"one", 1}, {"columns", x.cols});
  if (const auto with = on.enter("time_norm_backward"))
    time_norm_backward(*with, pieces, tile, x, moments, gain, epsilon, dy, dx, dmoments, dgain,
                       dbias);
}

template <device D>
void time_norm_release(D& on, const piece_list& pieces, given<D> x, given<D> moments,
                       double epsilon, given<D> dmoments, written<D> dx) {
  detail::expect_time_norm<D>("time_norm_release", pieces, x, moments);
  expect_alike("time_norm_release", "dmoments", dmoments, moments);
  expect_alike("time_norm_release", "dx", dx, x);
  if (const auto with = on.enter("time_norm_release"))
    time_norm_release(*with, pieces, x, moments, epsilon, dmoments, dx);
}

}  // namespace streambp::primitives
