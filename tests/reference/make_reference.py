#!/usr/bin/env python3
"""Writes the values that the C++ tests compare with, one JSON file per case, next to this script.

Inputs and parameters are not stored. Entry i (row-major) of a tensor with (seed, scale, offset) is

    offset + scale * sin((31 i i + (7919 + 613 seed) i + 104729 seed) mod 10007)

in 64-bit integers, then in double: the same numbers in C++. README.md describes the files.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path

import torch

import against_others
from formulas import (
    IGNORED,
    AttentionShape,
    LossShape,
    attention,
    capped,
    counted,
    cross_entropy,
    dpo,
    gated_recurrence,
    geglu,
    gelu,
    gelu_tanh,
    layer_norm,
    linear,
    log_probabilities,
    model_logits,
    rms_norm,
    swiglu,
)

HERE = Path(__file__).parent
FORMULA = "offset + scale * sin((31*i*i + (7919 + 613*seed)*i + 104729*seed) mod 10007)"


class Tensors:
    """Describes tensors by name and makes them; the n-th has seed `seed` + n."""

    def __init__(self, seed):
        self.seed, self.described, self.made = seed, [], {}

    def add(self, name, *shape, scale, offset=0.0):
        self.described.append(
            dict(name=name, shape=list(shape), seed=self.seed, scale=scale, offset=offset)
        )
        a, b = 7919 + 613 * self.seed, 104729 * self.seed
        values = [
            offset + scale * math.sin((31 * i * i + a * i + b) % 10007)
            for i in range(math.prod(shape))
        ]
        self.made[name] = torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()
        self.seed += 1
        return self

    def gradients(self):
        return {name: t.grad for name, t in self.made.items() if t.grad is not None}


def write(case, configuration, inputs, parameters, outputs):
    """After a backward pass. One tensor a line."""

    def tensors(named):
        rows = [f"  {json.dumps(n)}: {json.dumps(t.flatten().tolist())}" for n, t in named.items()]
        return "{\n" + ",\n".join(rows) + "\n}"

    def described(list_):
        return "[\n" + ",\n".join("  " + json.dumps(d) for d in list_) + "\n]" if list_ else "[]"

    gradients = inputs.gradients() | parameters.gradients()
    for name, g in gradients.items():
        assert torch.isfinite(g).all() and g.abs().max() > 1e-6, (case, name)
    parts = dict(
        case=json.dumps(case),
        formula=json.dumps(FORMULA),
        configuration=json.dumps(configuration),
        inputs=described(inputs.described),
        parameters=described(parameters.described),
        outputs=tensors(outputs),
        gradients=tensors(gradients),
    )
    text = "{\n" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in parts.items()) + "\n}\n"
    assert len(text) < 300_000, case
    (HERE / f"{case}.json").write_text(text)
    print(f"{case:32} {len(text) / 1024:6.0f} KiB")


# --- layers alone: given x and dy, the y, dx and parameter gradients ----------

TOKENS, FEATURES, OUT, INNER = 37, 16, 12, 24
OFFSETS = [0, 1, 14, 37]


def layer(case, configuration, forward, parameters, out=FEATURES, x_scale=1.0):
    given = Tensors(1).add("x", TOKENS, FEATURES, scale=x_scale).add("dy", TOKENS, out, scale=1.0)
    y = forward(given.made["x"], parameters.made)
    y.backward(given.made["dy"].detach())
    sizes = dict(tokens=TOKENS, features=FEATURES)
    write(case, sizes | configuration, given, parameters, dict(y=y))


def row_layers():
    def parameters():
        return Tensors(11)

    def affine(x, p):
        return linear(x, p["weight"], p.get("bias"))

    weight = parameters().add("weight", OUT, FEATURES, scale=0.35)
    layer("linear", dict(out=OUT, bias=False), affine, weight, out=OUT)
    weight = parameters().add("weight", OUT, FEATURES, scale=0.35).add("bias", OUT, scale=0.2)
    layer("linear_bias", dict(out=OUT, bias=True), affine, weight, out=OUT)

    gain = parameters().add("gain", FEATURES, scale=0.3, offset=1.0)
    layer("rms_norm", dict(epsilon=1e-6), lambda x, p: rms_norm(x, p["gain"], 1e-6), gain)
    gain = parameters().add("gain", FEATURES, scale=0.3, offset=1.0)
    gain.add("bias", FEATURES, scale=0.2)
    layer("layer_norm", dict(epsilon=1e-5), lambda x, p: layer_norm(x, **p, epsilon=1e-5), gain)

    layer("gelu", dict(), lambda x, p: gelu(x), parameters(), x_scale=3.0)
    layer("gelu_tanh", dict(), lambda x, p: gelu_tanh(x), parameters(), x_scale=3.0)

    for name, f in dict(swiglu=swiglu, geglu=geglu).items():
        p = parameters().add("gate", INNER, FEATURES, scale=0.5)
        p.add("up", INNER, FEATURES, scale=0.35).add("down", FEATURES, INNER, scale=0.3)
        layer(name, dict(inner=INNER), lambda x, p, f=f: f(x, **p), p)


def attention_parameters(shape, bias=False, sinks=False):
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    value, out = shape.kv_heads * shape.value_width, shape.heads * shape.value_width
    p = Tensors(11)
    p.add("wq", query, FEATURES, scale=0.6).add("wk", key, FEATURES, scale=0.6)
    p.add("wv", value, FEATURES, scale=0.35).add("wo", FEATURES, out, scale=0.35)
    if bias:
        for name, rows in dict(bq=query, bk=key, bv=value, bo=FEATURES).items():
            p.add(name, rows, scale=0.4)
    if sinks:
        p.add("sinks", shape.heads, scale=1.0, offset=0.5)
    return p


ATTENTION = dict(heads=4, kv_heads=2, head_width=8, value_width=8)


def attentions():
    cases = {
        "attention": (AttentionShape(**ATTENTION), dict()),
        "attention_bias": (AttentionShape(**ATTENTION), dict(bias=True)),
        "attention_window": (AttentionShape(**ATTENTION, window=5), dict()),
        "attention_softcap": (AttentionShape(**ATTENTION, softcap=20.0), dict()),
        "attention_sinks": (AttentionShape(**ATTENTION), dict(sinks=True)),
        "attention_window_sinks": (AttentionShape(**ATTENTION, window=5), dict(sinks=True)),
        "attention_value_width": (AttentionShape(**ATTENTION | dict(value_width=4)), dict()),
        "attention_bidirectional": (
            AttentionShape(**ATTENTION, causal=False, rotary_base=0.0),
            dict(),
        ),
    }
    for name, (shape, extra) in cases.items():
        layer(
            name,
            dict(offsets=OFFSETS) | asdict(shape) | dict(bias=False, sinks=False) | extra,
            lambda x, p, shape=shape: attention(x, p, OFFSETS, shape),
            attention_parameters(shape, **extra),
        )
    against_others.check_attention(cases["attention"][0], OFFSETS, attention_parameters)
    against_others.check_attention_of_one([shape for shape, _ in cases.values()])


def recurrence():
    p = Tensors(11)
    p.add("wf", OUT, FEATURES, scale=0.35).add("bf", OUT, scale=0.5, offset=1.0)
    p.add("wc", OUT, FEATURES, scale=0.35).add("bc", OUT, scale=0.2)
    p.add("wo", FEATURES, OUT, scale=0.4)
    layer(
        "gated_recurrence",
        dict(offsets=OFFSETS, state=OUT),
        lambda x, p: gated_recurrence(x, p, OFFSETS),
        p,
    )


# --- whole models -------------------------------------------------------------

VOCABULARY, WIDTH, MODEL_INNER, BLOCKS, EPSILON = 19, 16, 24, 2, 1e-6
MODEL_ATTENTION = AttentionShape(heads=4, kv_heads=2, head_width=4, value_width=4)


def transformer_parameters(shape, vocabulary, width, inner, blocks, scales):
    """All but the head's; `scales` of wq and wk, of wv and wo, of the gate, of up and down."""
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    scores, values, gate, rest = scales
    p = Tensors(11).add("embedding.table", vocabulary, width, scale=1.0)
    for n in range(blocks):
        at = f"blocks.{n}."
        p.add(at + "norm1.gain", width, scale=0.3, offset=1.0)
        p.add(at + "attention.wq", query, width, scale=scores)
        p.add(at + "attention.wk", key, width, scale=scores)
        p.add(at + "attention.wv", key, width, scale=values)
        p.add(at + "attention.wo", width, query, scale=values)
        p.add(at + "norm2.gain", width, scale=0.3, offset=1.0)
        p.add(at + "mlp.gate", inner, width, scale=gate)
        p.add(at + "mlp.up", inner, width, scale=rest)
        p.add(at + "mlp.down", width, inner, scale=rest)
    return p.add("norm.gain", width, scale=0.3, offset=1.0)


def model_parameters(tied=False):
    p = transformer_parameters(
        MODEL_ATTENTION, VOCABULARY, WIDTH, MODEL_INNER, BLOCKS, (0.6, 0.5, 0.5, 0.4)
    )
    return p if tied else p.add("head.weight", VOCABULARY, WIDTH, scale=0.5)


def token_ids(count):
    return [(31 * i * i + 7919 * i + 5) % 10007 % VOCABULARY for i in range(count)]


def masked(ids, ignored):
    return [IGNORED if t in ignored else token for t, token in enumerate(ids)]


def model_case(
    case, batch, loss_of, shape=LossShape(), tied=False, weights=None, loss="cross_entropy", **extra
):
    """Returns value and parameters, with gradients."""
    ids, labels, offsets = batch["ids"], batch["labels"], batch["offsets"]
    parameters = model_parameters(tied)
    raw = model_logits(ids, parameters.made, offsets, MODEL_ATTENTION, BLOCKS, EPSILON)
    z = capped(raw, shape)
    value = loss_of(z)
    value.backward()
    targets = counted(labels, offsets)
    lp = torch.zeros(len(ids), dtype=z.dtype)
    lp[targets] = log_probabilities(z, labels, targets)
    configuration = dict(
        tokens=len(ids),
        vocabulary=VOCABULARY,
        features=WIDTH,
        inner=MODEL_INNER,
        blocks=BLOCKS,
        epsilon=EPSILON,
        tied=tied,
        loss=loss,
    )
    outputs = dict(loss=value, log_probabilities=lp)
    if case == "model":
        outputs["logits"] = raw
    write(
        case,
        configuration | asdict(MODEL_ATTENTION) | asdict(shape) | extra | batch,
        weights or Tensors(1),
        parameters,
        outputs,
    )
    return value, parameters


def models():
    offsets = [0, 9, 10, 10, 37]  # ragged; one of length 1, one empty
    ids = token_ids(37)
    # Prompts, and tokens in between. Rows 9 and 10 have labels, but nothing before predicts them.
    batch = dict(
        offsets=offsets, ids=ids, labels=masked(ids, {0, 1, 2, 11, 12, 13, 14, 20, 29, 30})
    )
    labels = batch["labels"]

    cases = {
        "model": LossShape(),
        "model_label_smoothing": LossShape(label_smoothing=0.1),
        "model_z_loss": LossShape(z_loss=1e-2),
        "model_softcap": LossShape(logit_softcap=5.0, logit_scale=0.5),
        "model_mean_over_samples": LossShape(reduction="mean_over_samples"),
        "model_sum": LossShape(reduction="sum"),
    }
    made = {
        case: model_case(case, batch, lambda z, s=s: cross_entropy(z, labels, offsets, s), s)
        for case, s in cases.items()
    }
    plain = LossShape()
    model_case("model_tied", batch, lambda z: cross_entropy(z, labels, offsets, plain), tied=True)

    all_of_it = LossShape(label_smoothing=0.1, z_loss=1e-2, logit_softcap=5.0, logit_scale=0.5)
    for case, shape in {"model_weights": plain, "model_everything": all_of_it}.items():
        given = Tensors(1).add("weights", 37, scale=0.5, offset=1.0)
        w = given.made["weights"].detach()
        model_case(
            case,
            batch,
            lambda z, s=shape: cross_entropy(z, labels, offsets, s, w),
            shape,
            weights=given,
        )

    value, p = made["model"]
    against_others.check_model(
        value, p.gradients(), batch, p.made, MODEL_ATTENTION, BLOCKS, EPSILON, MODEL_INNER
    )
    raw = model_logits(ids, p.made, offsets, MODEL_ATTENTION, BLOCKS, EPSILON)
    against_others.check_smoothing(made["model_label_smoothing"][0], raw, batch, 0.1)


def coupled():
    offsets = [0, 9, 15, 22, 37]  # chosen, rejected, chosen, rejected
    ids = token_ids(37)
    for chosen, rejected, prompt in [(0, 9, 3), (15, 22, 4)]:
        ids[rejected : rejected + prompt] = ids[chosen : chosen + prompt]
    batch = dict(
        offsets=offsets,
        ids=ids,
        labels=masked(ids, {0, 1, 2, 9, 10, 11, 15, 16, 17, 18, 22, 23, 24, 25}),
    )
    # Near the model's own sums: one pair gains, the other loses.
    reference, beta = [-21.5, -12.25, -11.75, -50.5], 0.3
    model_case(
        "model_dpo",
        batch,
        lambda z: dpo(z, batch["labels"], offsets, reference, beta),
        loss="dpo",
        reference_log_probabilities=reference,
        beta=beta,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    against_others.check_row_operators()
    row_layers()
    attentions()
    recurrence()
    models()
    coupled()
