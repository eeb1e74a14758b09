// What a selective state space layer does to a token's heads around its recurrence: step sizes,
// decays, inputs, and the way past the state.
#pragma once

#include <span>

#include "device.hpp"
#include "expect_shape.hpp"

namespace streambp::primitives {

namespace detail {

// The heads' columns stand side by side.
template <class S>
void expect_heads(const char* primitive, const char* operand, const view<S>& x, position heads) {
  const position width = heads > 0 ? x.cols / heads : 0;
  expect_shape(primitive, operand, x, {"rows", x.rows}, {"heads x width", heads * width});
}

}  // namespace detail

// dt = ln(1 + e^z), la = -e^(a_log) dt: z, dt, la (rows, heads), a_log (1, heads).
template <device D>
void state_steps(D& on, given<D> z, given<D> a_log, written<D> dt, written<D> la) {
  expect_alike("state_steps", "z", z, dt);
  expect_shape("state_steps", "a_log", a_log, {"one", 1}, {"heads", dt.cols});
  expect_alike("state_steps", "la", la, dt);
  if (const auto with = on.enter("state_steps")) state_steps(*with, z, a_log, dt, la);
}

// dz = (ddt - e^(a_log) dla) σ(z); da_log += Σ dla ∘ la, unless without rows. dz may be z. Where la
// is infinite dla is 0, and so are the products.
template <device D>
void state_steps_backward(D& on, given<D> z, given<D> a_log, given<D> la, given<D> ddt,
                          given<D> dla, written<D> dz, written<D> da_log,
                          std::span<const position> grains) {
  constexpr auto name = "state_steps_backward";
  expect_alike(name, "z", z, dz);
  expect_shape(name, "a_log", a_log, {"one", 1}, {"heads", dz.cols});
  expect_alike(name, "la", la, dz);
  expect_alike(name, "ddt", ddt, dz);
  expect_alike(name, "dla", dla, dz);
  expect_shape_if_any(name, "da_log", da_log, {"one", 1}, {"heads", dz.cols});
  if (da_log.rows > 0) expect_grains(name, grains, dz.rows);
  if (const auto with = on.enter("state_steps_backward"))
    state_steps_backward(*with, z, a_log, la, ddt, dla, dz, da_log, grains);
}

// v_h = dt_h x_h: x, v (rows, heads * width).
template <device D>
void state_inputs(D& on, given<D> dt, given<D> x, written<D> v) {
  detail::expect_heads("state_inputs", "v", v, dt.cols);
  expect_shape("state_inputs", "dt", dt, {"rows", v.rows}, {"heads", dt.cols});
  expect_alike("state_inputs", "x", x, v);
  if (const auto with = on.enter("state_inputs")) state_inputs(*with, dt, x, v);
}

// o_h += skip_h x_h: skip (1, heads).
template <device D>
void add_skip(D& on, given<D> skip, given<D> x, written<D> o) {
  detail::expect_heads("add_skip", "o", o, skip.cols);
  expect_shape("add_skip", "skip", skip, {"one", 1}, {"heads", skip.cols});
  expect_alike("add_skip", "x", x, o);
  if (const auto with = on.enter("add_skip")) add_skip(*with, skip, x, o);
}

// dx_h = dt_h dv_h + skip_h do_h, ddt_h = x_h·dv_h, dskip_h = x_h·do_h, by row.
template <device D>
void state_inputs_backward(D& on, given<D> dt, given<D> skip, given<D> x, given<D> dv, given<D> d_o,
                           written<D> dx, written<D> ddt, written<D> dskip) {
  constexpr auto name = "state_inputs_backward";
  detail::expect_heads(name, "dx", dx, dt.cols);
  expect_shape(name, "dt", dt, {"rows", dx.rows}, {"heads", dt.cols});
  expect_shape(name, "skip", skip, {"one", 1}, {"heads", dt.cols});
  expect_alike(name, "x", x, dx);
  expect_alike(name, "dv", dv, dx);
  expect_alike(name, "d_o", d_o, dx);
  expect_alike(name, "ddt", ddt, dt);
  expect_alike(name, "dskip", dskip, dt);
  if (const auto with = on.enter("state_inputs_backward"))
    state_inputs_backward(*with, dt, skip, x, dv, d_o, dx, ddt, dskip);
}

}  // namespace streambp::primitives
