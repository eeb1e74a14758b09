// What a selective state space layer does to a token's heads around its recurrence: step sizes,
// decays, inputs, and the way past the state.
#pragma once

#include <span>

#include "device.hpp"

namespace streambp::primitives {

// dt = ln(1 + e^z), la = -e^(a_log) dt: z, dt, la (rows, heads), a_log (1, heads).
template <device D>
void state_steps(D& on, given<D> z, given<D> a_log, written<D> dt, written<D> la) {
  if (const auto with = on.enter("state_steps")) state_steps(*with, z, a_log, dt, la);
}

// dz = (ddt - e^(a_log) dla) σ(z); da_log += Σ dla ∘ la, unless without rows. dz may be z. Where la
// is infinite dla is 0, and so are the products.
template <device D>
void state_steps_backward(D& on, given<D> z, given<D> a_log, given<D> la, given<D> ddt,
                          given<D> dla, written<D> dz, written<D> da_log,
                          std::span<const position> grains) {
  if (const auto with = on.enter("state_steps_backward"))
    state_steps_backward(*with, z, a_log, la, ddt, dla, dz, da_log, grains);
}

// v_h = dt_h x_h: x, v (rows, heads * width).
template <device D>
void state_inputs(D& on, given<D> dt, given<D> x, written<D> v) {
  if (const auto with = on.enter("state_inputs")) state_inputs(*with, dt, x, v);
}

// o_h += skip_h x_h: skip (1, heads).
template <device D>
void add_skip(D& on, given<D> skip, given<D> x, written<D> o) {
  if (const auto with = on.enter("add_skip")) add_skip(*with, skip, x, o);
}

// dx_h = dt_h dv_h + skip_h do_h, ddt_h = x_h·dv_h, dskip_h = x_h·do_h, by row.
template <device D>
void state_inputs_backward(D& on, given<D> dt, given<D> skip, given<D> x, given<D> dv, given<D> d_o,
                           written<D> dx, written<D> ddt, written<D> dskip) {
  if (const auto with = on.enter("state_inputs_backward"))
    state_inputs_backward(*with, dt, skip, x, dv, d_o, dx, ddt, dskip);
}

}  // namespace streambp::primitives
