// Normalisation of each row: root mean square, and layer norm. r is the inverse deviation of a row,
// right also where squares overflow, and 0 where it would be infinite: a row of zeros gives zeros.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

// y = x r ∘ gain, r = 1 / sqrt(mean x² + epsilon). Writes r to inverse (rows, 1); gain (1, d) may
// be without data; y may be x.
template <device D>
void rms_norm_forward(D& on, given<D> x, given<D> gain, double epsilon, written<D> y,
                      written<D> inverse, double gain_offset = 0) {
  expect_shape_if_any("rms_norm_forward", "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_alike("rms_norm_forward", "y", y, x);
  expect_shape("rms_norm_forward", "inverse", inverse, {"rows", x.rows}, {"one", 1});
  if (const auto with = on.enter("rms_norm_forward"))
    rms_norm_forward(*with, x, gain, epsilon, y, inverse, gain_offset);
}

// dz = dy ∘ gain;  dx += r (dz - x r² mean(dz ∘ x));  dgain += Σ dy ∘ x r, unless without rows. dx
// may be dy.
template <device D>
void rms_norm_backward(D& on, given<D> x, given<D> gain, given<D> inverse, given<D> dy,
                       written<D> dx, written<D> dgain, std::span<const position> grains,
                       double gain_offset = 0) {
  expect_shape_if_any("rms_norm_backward", "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_shape("rms_norm_backward", "inverse", inverse, {"rows", x.rows}, {"one", 1});
  expect_alike("rms_norm_backward", "dy", dy, x);
  expect_alike("rms_norm_backward", "dx", dx, x);
  expect_shape_if_any("rms_norm_backward", "dgain", dgain, {"one", 1}, {"columns", x.cols});
  if (dgain.rows > 0) expect_grains("rms_norm_backward", grains, x.rows);
  if (const auto with = on.enter("rms_norm_backward"))
    rms_norm_backward(*with, x, gain, inverse, dy, dx, dgain, grains, gain_offset);
}

// z = (x - mean) r, y = z ∘ gain + bias, r = 1 / sqrt(mean (x - mean)² + epsilon). Writes mean and
// r to statistics (rows, 2); gain and bias (1, d) may be without data; y may be x.
template <device D>
void layer_norm_forward(D& on, given<D> x, given<D> gain, given<D> bias, double epsilon,
                        written<D> y, written<D> statistics, double gain_offset = 0) {
  expect_shape_if_any("layer_norm_forward", "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_shape_if_any("layer_norm_forward", "bias", bias, {"one", 1}, {"columns", x.cols});
  expect_alike("layer_norm_forward", "y", y, x);
  expect_shape("layer_norm_forward", "statistics", statistics, {"rows", x.rows},
               {"mean and inverse deviation", 2});
  if (const auto with = on.enter("layer_norm_forward"))
    layer_norm_forward(*with, x, gain, bias, epsilon, y, statistics, gain_offset);
}

// dz = dy ∘ gain;  dx += r (dz - mean dz - z mean(dz ∘ z));  dgain += Σ dy ∘ z, dbias += Σ dy,
// unless without rows. dx may be dy.
template <device D>
void layer_norm_backward(D& on, given<D> x, given<D> gain, given<D> statistics, given<D> dy,
                         written<D> dx, written<D> dgain, written<D> dbias,
                         std::span<const position> grains, double gain_offset = 0) {
  expect_shape_if_any("layer_norm_backward", "gain", gain, {"one", 1}, {"columns", x.cols});
  expect_shape("layer_norm_backward", "statistics", statistics, {"rows", x.rows},
               {"mean and inverse deviation", 2});
  expect_alike("layer_norm_backward", "dy", dy, x);
  expect_alike("layer_norm_backward", "dx", dx, x);
  expect_shape_if_any("layer_norm_backward", "dgain", dgain, {"one", 1}, {"columns", x.cols});
  expect_shape_if_any("layer_norm_backward", "dbias", dbias, {"one", 1}, {"columns", x.cols});
  if (dgain.rows + dbias.rows > 0) expect_grains("layer_norm_backward", grains, x.rows);
  if (const auto with = on.enter("layer_norm_backward"))
    layer_norm_backward(*with, x, gain, statistics, dy, dx, dgain, dbias, grains, gain_offset);
}

}  // namespace streambp::primitives
