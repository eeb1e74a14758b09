"""The operators, the model and the losses, written out in PyTorch as their formulas.

Rows are tokens: x is (tokens, features). Samples are packed one after another, `offsets` says
where; positions, attention and recurrent state restart at each. Weights are (out, in), as in
torch.nn.Linear.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch

IGNORED = -100  # the label of a token that does not count


# --- row operators ------------------------------------------------------------


def linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def rms_norm(x, gain, epsilon):
    return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon)


def layer_norm(x, gain, bias, epsilon):
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + epsilon) + bias


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + torch.exp(-x))


def swiglu(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def geglu(x, gate, up, down):
    return (gelu(x @ gate.T) * (x @ up.T)) @ down.T


# --- operators along the sequence ---------------------------------------------


@dataclass
class AttentionShape:
    heads: int
    kv_heads: int
    head_width: int  # of queries and keys
    value_width: int
    causal: bool = True
    rotary_base: float = 10000.0  # 0: none
    window: int = 0  # a row sees itself and window - 1 rows before; 0: all
    softcap: float = 0.0  # 0: none


def rotary(x, base):
    """x: (rows, heads, width), row t at position t. Pairs are (j, j + width / 2), as in Llama."""
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[0], dtype=torch.float64)[:, None, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def visible(rows, shape):
    query, key = torch.arange(rows)[:, None], torch.arange(rows)[None, :]
    seen = key <= query if shape.causal else torch.ones(rows, rows, dtype=torch.bool)
    return seen & (query - key < shape.window) if shape.window else seen


def attention_of_one(q, k, v, shape, sinks=None):
    """One sample; q (rows, heads, width), k and v (rows, kv_heads, width)."""
    group = shape.heads // shape.kv_heads
    k, v = (m.repeat_interleave(group, dim=1) for m in (k, v))  # head h reads kv head h // group
    s = torch.einsum("ihw,jhw->hij", q, k) / math.sqrt(shape.head_width)
    if shape.softcap:
        s = shape.softcap * torch.tanh(s / shape.softcap)
    s = s.masked_fill(~visible(q.shape[0], shape), -math.inf)
    lse = torch.logsumexp(s, dim=-1)
    if sinks is not None:  # one more term of the denominator
        lse = torch.logaddexp(lse, sinks[:, None])
    return torch.einsum("hij,jhw->ihw", torch.exp(s - lse[..., None]), v)


def attention(x, p, offsets, shape):
    """p: wq wk wv wo, and optionally bq bk bv bo, sinks (one logit per head)."""
    q = linear(x, p["wq"], p.get("bq")).unflatten(-1, (shape.heads, shape.head_width))
    k = linear(x, p["wk"], p.get("bk")).unflatten(-1, (shape.kv_heads, shape.head_width))
    v = linear(x, p["wv"], p.get("bv")).unflatten(-1, (shape.kv_heads, shape.value_width))
    out = []
    for first, last in pairwise(offsets):
        one_q, one_k = q[first:last], k[first:last]
        if shape.rotary_base:
            one_q, one_k = rotary(one_q, shape.rotary_base), rotary(one_k, shape.rotary_base)
        out.append(attention_of_one(one_q, one_k, v[first:last], shape, p.get("sinks")))
    return linear(torch.cat(out).flatten(1), p["wo"], p.get("bo"))


def gated_recurrence(x, p, offsets):
    """f = sigmoid(x wf' + bf), c = x wc' + bc, h[t] = f[t] h[t-1] + (1 - f[t]) c[t], y = h wo'."""
    f = torch.sigmoid(linear(x, p["wf"], p["bf"]))
    c = linear(x, p["wc"], p["bc"])
    states = []
    for first, last in pairwise(offsets):
        h = torch.zeros_like(c[0])
        for t in range(first, last):
            h = f[t] * h + (1 - f[t]) * c[t]
            states.append(h)
    return torch.stack(states) @ p["wo"].T


# --- the model ----------------------------------------------------------------


def under(p, prefix):
    return {name[len(prefix) :]: value for name, value in p.items() if name.startswith(prefix)}


def model_logits(ids, p, offsets, shape, blocks, epsilon):
    """embedding | blocks x (x += attention(norm1 x), x += mlp(norm2 x)) | norm | head."""
    x = p["embedding.table"][ids]
    for n in range(blocks):
        b = under(p, f"blocks.{n}.")
        x = x + attention(
            rms_norm(x, b["norm1.gain"], epsilon), under(b, "attention."), offsets, shape
        )
        x = x + swiglu(rms_norm(x, b["norm2.gain"], epsilon), **under(b, "mlp."))
    head = p.get("head.weight", p["embedding.table"])
    return rms_norm(x, p["norm.gain"], epsilon) @ head.T


# --- losses -------------------------------------------------------------------


def counted(labels, offsets):
    """Rows t whose label is predicted (by row t - 1 of the same sample) and counts."""
    return [
        t
        for first, last in pairwise(offsets)
        for t in range(first + 1, last)
        if labels[t] != IGNORED
    ]


@dataclass
class LossShape:
    reduction: str = "mean_over_tokens"  # mean_over_samples, sum
    label_smoothing: float = 0.0
    z_loss: float = 0.0
    logit_softcap: float = 0.0  # 0: none
    logit_scale: float = 1.0


def capped(raw, shape):
    z = shape.logit_scale * raw
    return shape.logit_softcap * torch.tanh(z / shape.logit_softcap) if shape.logit_softcap else z


def log_probabilities(z, labels, targets):
    """Of the label of each target t, given the rows before: from row t - 1 of z."""
    predictors = [t - 1 for t in targets]
    lse = torch.logsumexp(z[predictors], dim=-1)
    return z[predictors, [labels[t] for t in targets]] - lse


def token_losses(z, labels, targets, shape):
    """(1 - e) nll + e mean over v of -log p(v) + z_loss lse^2, for each target."""
    row = z[[t - 1 for t in targets]]
    lse = torch.logsumexp(row, dim=-1)
    e = shape.label_smoothing
    nll = -log_probabilities(z, labels, targets)
    return (1 - e) * nll + e * (lse - row.mean(-1)) + shape.z_loss * lse**2


def cross_entropy(z, labels, offsets, shape, weights=None):
    """Sum: of w l. Mean over tokens: sum of w l / sum of w. Mean over samples: over those that have
    counted tokens, of each one's mean. weights[t] belongs to the label of row t."""
    targets = counted(labels, offsets)
    w = torch.ones(len(labels), dtype=z.dtype) if weights is None else weights
    loss = dict(zip(targets, w[targets] * token_losses(z, labels, targets, shape)))

    def total(rows):
        return torch.stack([loss[t] for t in rows]).sum()

    if shape.reduction == "sum":
        return total(targets)
    if shape.reduction == "mean_over_tokens":
        return total(targets) / w[targets].sum()
    samples = [[t for t in targets if a <= t < b] for a, b in pairwise(offsets)]
    return torch.stack([total(s) / w[s].sum() for s in samples if s]).mean()


def sums_of_log_probabilities(z, labels, offsets):
    targets = counted(labels, offsets)
    lp = dict(zip(targets, log_probabilities(z, labels, targets)))
    return torch.stack(
        [
            sum((lp[t] for t in targets if a <= t < b), torch.zeros((), dtype=z.dtype))
            for a, b in pairwise(offsets)
        ]
    )


def dpo(z, labels, offsets, reference, beta):
    """Samples 2i and 2i + 1 are chosen and rejected; the mean over pairs i of
    -log sigmoid(beta ((lp_c - reference_c) - (lp_r - reference_r)))."""
    gain = sums_of_log_probabilities(z, labels, offsets) - torch.tensor(reference, dtype=z.dtype)
    return torch.nn.functional.softplus(-beta * (gain[0::2] - gain[1::2])).mean()
