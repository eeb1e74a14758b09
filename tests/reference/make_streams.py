#!/usr/bin/env python3
"""Writes the reference values of the layers whose rows meet elsewhere than in their own past, as
make_reference.py does those of the others: mixture of experts with side losses, attention to a
second stream, normalisation over time.

Each is written out as its formula and checked against torch or transformers.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise

import torch
from torch.nn.functional import batch_norm, one_hot, scaled_dot_product_attention
from transformers.models.mixtral.configuration_mixtral import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import (
    MixtralSparseMoeBlock,
    load_balancing_loss_func,
)

from formulas import AttentionShape, attention_of_one, linear, swiglu
from make_reference import FEATURES, OFFSETS, TOKENS, Tensors, layer, write


def same(a, b, what, within=1e-12):
    assert torch.allclose(a, b, rtol=0, atol=within), what


# --- mixture of experts ---------------------------------------------------------


@dataclass
class ExpertShape:
    experts: int
    top: int
    inner: int
    normalised: bool
    balance: float
    z_loss: float


def experts_of(p, shape):
    """The gate, up and down matrices of each expert."""
    parts = [p[name].unflatten(0, (shape.experts, -1)) for name in ("gate", "up", "down")]
    return list(zip(*parts))


def mixture(x, p, shape):
    """y; balance E sum over e of (share of choices)_e (mean probability)_e + z_loss mean lse^2."""
    logits = linear(x, p["router"])
    lse = torch.logsumexp(logits, dim=-1)
    probability = torch.exp(logits - lse[:, None])
    chosen = torch.topk(probability.detach(), shape.top).indices
    weights = probability.gather(1, chosen)
    if shape.normalised:
        weights = weights / weights.sum(-1, keepdim=True)
    experts = experts_of(p, shape)
    y = torch.stack(
        [
            sum(w * swiglu(row, *experts[e]) for w, e in zip(row_weights, row_chosen))
            for row, row_weights, row_chosen in zip(x, weights, chosen.tolist())
        ]
    )
    share = one_hot(chosen, shape.experts).to(x.dtype).mean((0, 1))
    side = shape.balance * shape.experts * (share * probability.mean(0)).sum()
    return y, side + shape.z_loss * (lse**2).mean()


def check_mixture(x, p, shape, y, side):
    """Mixtral's block; its balance loss counts each of a token's choices as a whole one."""
    block = MixtralSparseMoeBlock(
        MixtralConfig(
            hidden_size=FEATURES,
            intermediate_size=shape.inner,
            num_local_experts=shape.experts,
            num_experts_per_tok=shape.top,
        )
    ).to(torch.float64)
    with torch.no_grad():
        block.gate.weight.copy_(p["router"])
        for expert, (gate, up, down) in zip(block.experts, experts_of(p, shape)):
            expert.w1.weight.copy_(gate)
            expert.w3.weight.copy_(up)
            expert.w2.weight.copy_(down)
        # transformers has weights and shares in fp32.
        theirs, logits = block.eval()(x.detach()[None])
        same(theirs[0], y, "mixture", within=1e-6)
        balance = load_balancing_loss_func((logits,), shape.experts, shape.top) / shape.top
        lse = torch.logsumexp(logits, dim=-1)
        same(shape.balance * balance + shape.z_loss * (lse**2).mean(), side, "side losses", 1e-6)


def mixtures():
    for case, shape in {
        "experts": ExpertShape(4, 2, 10, normalised=True, balance=3.0, z_loss=0.5),
        "experts_top1": ExpertShape(3, 1, 8, normalised=False, balance=0.0, z_loss=0.0),
    }.items():
        inner = shape.experts * shape.inner
        p = Tensors(11).add("router", shape.experts, FEATURES, scale=0.5)
        p.add("gate", inner, FEATURES, scale=0.5).add("up", inner, FEATURES, scale=0.35)
        p.add("down", shape.experts * FEATURES, shape.inner, scale=0.3)
        given = Tensors(1).add("x", TOKENS, FEATURES, scale=1.0)
        given.add("dy", TOKENS, FEATURES, scale=1.0)
        y, side = mixture(given.made["x"], p.made, shape)
        if shape.normalised:
            check_mixture(given.made["x"], p.made, shape, y, side)
        ((y * given.made["dy"].detach()).sum() + side).backward()
        sizes = dict(tokens=TOKENS, features=FEATURES)
        write(case, sizes | asdict(shape), given, p, dict(y=y, side_loss=side))


# --- attention to another stream --------------------------------------------------

# The second sample has nothing to read: its rows are 0.
CONTEXT_OFFSETS, CONTEXT_FEATURES = [0, 7, 7, 30], 12


def cross_attention(x, c, p, shape):
    out = []
    for (first, last), (begin, end) in zip(pairwise(OFFSETS), pairwise(CONTEXT_OFFSETS)):
        if begin == end:
            out.append(torch.zeros(last - first, shape.heads * shape.value_width, dtype=x.dtype))
            continue
        q = linear(x[first:last], p["wq"]).unflatten(-1, (shape.heads, shape.head_width))
        k = linear(c[begin:end], p["wk"]).unflatten(-1, (shape.kv_heads, shape.head_width))
        v = linear(c[begin:end], p["wv"]).unflatten(-1, (shape.kv_heads, shape.value_width))
        one = attention_of_one(q, k, v, shape)
        k, v = (m.repeat_interleave(shape.heads // shape.kv_heads, dim=1) for m in (k, v))
        q, k, v = (m.transpose(0, 1) for m in (q, k, v))
        same(one, scaled_dot_product_attention(q, k, v).transpose(0, 1), "cross attention")
        out.append(one.flatten(1))
    return linear(torch.cat(out), p["wo"])


def cross_attentions():
    shape = AttentionShape(
        heads=4, kv_heads=2, head_width=6, value_width=5, causal=False, rotary_base=0.0
    )
    keys, values = shape.kv_heads * shape.head_width, shape.kv_heads * shape.value_width
    p = Tensors(11).add("wq", shape.heads * shape.head_width, FEATURES, scale=0.6)
    p.add("wk", keys, CONTEXT_FEATURES, scale=0.6).add("wv", values, CONTEXT_FEATURES, scale=0.4)
    p.add("wo", FEATURES, shape.heads * shape.value_width, scale=0.35)
    given = Tensors(1).add("x", TOKENS, FEATURES, scale=1.0)
    given.add("dy", TOKENS, FEATURES, scale=1.0)
    given.add("c", CONTEXT_OFFSETS[-1], CONTEXT_FEATURES, scale=1.0)
    y = cross_attention(given.made["x"], given.made["c"], p.made, shape)
    y.backward(given.made["dy"].detach())
    sizes = dict(tokens=TOKENS, features=FEATURES, offsets=OFFSETS)
    other = dict(context_offsets=CONTEXT_OFFSETS, context_features=CONTEXT_FEATURES)
    write("cross_attention", sizes | other | asdict(shape), given, p, dict(y=y))


# --- normalisation over time ------------------------------------------------------


def time_norm(x, gain, bias, epsilon):
    """Each feature over the rows of a sample."""
    out = []
    for first, last in pairwise(OFFSETS):
        one = x[first:last]
        apart = one - one.mean(0)
        y = gain * apart / torch.sqrt((apart**2).mean(0) + epsilon) + bias
        if last - first > 1:
            same(y, batch_norm(one, None, None, gain, bias, True, eps=epsilon), "time norm")
        out.append(y)
    return torch.cat(out)


def time_norms():
    p = Tensors(11).add("gain", FEATURES, scale=0.3, offset=1.0).add("bias", FEATURES, scale=0.2)
    layer(
        "time_norm",
        dict(offsets=OFFSETS, epsilon=1e-5),
        lambda x, p: time_norm(x, **p, epsilon=1e-5),
        p,
        x_scale=2.0,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    mixtures()
    cross_attentions()
    time_norms()
