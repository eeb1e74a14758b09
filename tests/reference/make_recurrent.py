#!/usr/bin/env python3
"""Writes the reference values of the recurrent layers, as make_reference.py does those of the others.

The state space, linear attention and convolution layers are written out token by token; LSTM and GRU
are torch.nn's own. The convolution is checked against torch.nn.functional.conv1d.
"""

from itertools import pairwise

import torch
from torch.nn.functional import conv1d, silu, softplus

from formulas import linear, rms_norm, rotary
from make_reference import FEATURES, OFFSETS, Tensors, layer


def by_sample(x, forward):
    return torch.cat([forward(x[first:last]) for first, last in pairwise(OFFSETS)])


# --- causal convolution ---------------------------------------------------------


def convolution_of_one(x, weight, bias):
    """y[t] = bias + sum over i of weight[i] x[t - i]."""
    rows = []
    for t in range(len(x)):
        y = bias
        for i in range(min(len(weight), t + 1)):
            y = y + weight[i] * x[t - i]
        rows.append(y)
    y = torch.stack(rows)
    padded = torch.nn.functional.pad(x.T, (len(weight) - 1, 0))
    right = conv1d(padded, weight.flip(0).T[:, None], bias, groups=x.shape[1]).T
    assert torch.allclose(y, right, rtol=0, atol=1e-12)
    return y


def convolutions():
    for case, taps, activated in [("convolution", 4, False), ("convolution_silu", 11, True)]:
        p = Tensors(11).add("weight", taps, FEATURES, scale=0.5).add("bias", FEATURES, scale=0.3)

        def forward(x, p, activated=activated):
            y = by_sample(x, lambda one: convolution_of_one(one, p["weight"], p["bias"]))
            return silu(y) if activated else y

        layer(case, dict(offsets=OFFSETS, taps=taps, silu=activated), forward, p)


# --- linear attention -----------------------------------------------------------


def linear_attention_of_one(q, k, v, a, scale):
    """q, k (rows, heads, key width), v (rows, heads, value width), a (rows, heads):
    S[t] = a[t] S[t-1] + k[t] v[t]', o[t] = scale S[t]' q[t]."""
    state = torch.zeros(q.shape[1], q.shape[2], v.shape[2], dtype=q.dtype)
    out = []
    for t in range(len(q)):
        state = a[t, :, None, None] * state + k[t, :, :, None] * v[t, :, None, :]
        out.append(scale * torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(out)


HEADS, KEY_WIDTH, VALUE_WIDTH, ROOT, EPSILON = 2, 6, 10, 16.0, 1e-5


def linear_attention(x, p, decays, rotary_base):
    def heads(name, width):
        return linear(x, p[name]).unflatten(-1, (HEADS, width))

    q, k, v = heads("wq", KEY_WIDTH), heads("wk", KEY_WIDTH), heads("wv", VALUE_WIDTH)
    out = []
    for first, last in pairwise(OFFSETS):
        one_q, one_k = q[first:last], k[first:last]
        if rotary_base:
            one_q, one_k = rotary(one_q, rotary_base), rotary(one_k, rotary_base)
        out.append(
            linear_attention_of_one(
                one_q, one_k, v[first:last], decays[first:last], KEY_WIDTH**-0.5
            )
        )
    n = rms_norm(torch.cat(out), 1.0, EPSILON).flatten(1)
    return linear(n * silu(linear(x, p["wg"])), p["wo"])


def linear_attentions():
    keys, values = HEADS * KEY_WIDTH, HEADS * VALUE_WIDTH

    def parameters():
        p = Tensors(11).add("wq", keys, FEATURES, scale=0.4).add("wk", keys, FEATURES, scale=0.4)
        p.add("wv", values, FEATURES, scale=0.35).add("wg", values, FEATURES, scale=0.35)
        return p.add("wo", FEATURES, values, scale=0.3)

    configuration = dict(
        offsets=OFFSETS, heads=HEADS, key_width=KEY_WIDTH, value_width=VALUE_WIDTH, epsilon=EPSILON
    )

    def retention(x, p):
        fixed = 1 - 2.0 ** (-5 - torch.arange(HEADS, dtype=x.dtype))
        return linear_attention(x, p, fixed.expand(len(x), HEADS), 10000.0)

    layer("retention", configuration | dict(rotary_base=10000.0), retention, parameters())

    def gated(x, p):
        a = torch.sigmoid(linear(x, p["wa"], p["ba"])) ** (1 / ROOT)
        return linear_attention(x, p, a, 0.0)

    p = parameters().add("wa", HEADS, FEATURES, scale=1.0).add("ba", HEADS, scale=1.0, offset=-2.0)
    layer("gated_linear_attention", configuration | dict(root=ROOT, rotary_base=0.0), gated, p)


# --- state space ----------------------------------------------------------------

INNER, HEAD_WIDTH, STATES, GROUPS, TAPS = 24, 6, 5, 2, 4


def state_space(u, p):
    heads, shared = INNER // HEAD_WIDTH, GROUPS * STATES
    mixed = INNER + 2 * shared
    z, xbc, dt = linear(u, p["in"]).split([INNER, mixed, heads], dim=-1)
    xbc = silu(by_sample(xbc, lambda one: convolution_of_one(one, p["kernel"], p["kernel_bias"])))
    x, b, c = xbc.split([INNER, shared, shared], dim=-1)
    x = x.unflatten(-1, (heads, HEAD_WIDTH))
    b, c = (
        m.unflatten(-1, (GROUPS, STATES)).repeat_interleave(heads // GROUPS, dim=1) for m in (b, c)
    )
    dt = softplus(dt + p["dt_bias"])
    a = torch.exp(-torch.exp(p["a_log"]) * dt)
    o = torch.cat(
        [
            linear_attention_of_one(
                c[first:last], b[first:last], dt[first:last, :, None] * x[first:last], a[first:last], 1
            )
            for first, last in pairwise(OFFSETS)
        ]
    )
    o = (o + p["skip"][:, None] * x).flatten(1)
    return linear(rms_norm(o * silu(z), p["gain"], EPSILON), p["out"])


def state_spaces():
    heads = INNER // HEAD_WIDTH
    mixed = INNER + 2 * GROUPS * STATES
    p = Tensors(11).add("in", INNER + mixed + heads, FEATURES, scale=0.35)
    p.add("kernel", TAPS, mixed, scale=0.6).add("kernel_bias", mixed, scale=0.2)
    p.add("dt_bias", heads, scale=0.5, offset=-1.0).add("a_log", heads, scale=0.5, offset=0.5)
    p.add("skip", heads, scale=0.3, offset=1.0).add("gain", INNER, scale=0.3, offset=1.0)
    p.add("out", FEATURES, INNER, scale=0.3)
    configuration = dict(
        offsets=OFFSETS,
        inner=INNER,
        head_width=HEAD_WIDTH,
        states=STATES,
        groups=GROUPS,
        taps=TAPS,
        epsilon=EPSILON,
    )
    layer("state_space", configuration, state_space, p)


# --- torch.nn's own -------------------------------------------------------------


def with_weights(module, weights, x):
    return torch.func.functional_call(module, weights, (x[:, None],))[0][:, 0]


def cells():
    units = 12
    p = Tensors(11).add("wx", 4 * units, FEATURES, scale=0.5).add("wh", 4 * units, units, scale=0.6)
    p.add("b", 4 * units, scale=0.3)

    def lstm(x, p):
        weights = dict(weight_ih_l0=p["wx"], weight_hh_l0=p["wh"])
        weights |= dict(bias_ih_l0=p["b"], bias_hh_l0=torch.zeros_like(p["b"]))
        module = torch.nn.LSTM(FEATURES, units, dtype=x.dtype)
        return by_sample(x, lambda one: with_weights(module, weights, one))

    layer("lstm", dict(offsets=OFFSETS, units=units), lstm, p, out=units)

    p = Tensors(11).add("wx", 3 * units, FEATURES, scale=0.5).add("wh", 3 * units, units, scale=0.6)
    p.add("bx", 3 * units, scale=0.3).add("bh", 3 * units, scale=0.3)

    def gru(x, p):
        weights = dict(weight_ih_l0=p["wx"], weight_hh_l0=p["wh"])
        weights |= dict(bias_ih_l0=p["bx"], bias_hh_l0=p["bh"])
        module = torch.nn.GRU(FEATURES, units, dtype=x.dtype)
        return by_sample(x, lambda one: with_weights(module, weights, one))

    layer("gru", dict(offsets=OFFSETS, units=units), gru, p, out=units)


if __name__ == "__main__":
    torch.set_num_threads(1)
    convolutions()
    linear_attentions()
    state_spaces()
    cells()
