#!/usr/bin/env python3
"""How far PyTorch's fp32 gradients of a model are from its own fp64 ones, tensor by tensor.

Writes precision.json: sizes, and for value and gradients |g32 - g64| / |g64| by the Euclidean norm. The
parameters are rounded to fp32 first, so both precisions start from the same numbers.
"""

import json
from dataclasses import asdict

import torch

from formulas import AttentionShape, LossShape, cross_entropy, model_logits
from make_reference import HERE, transformer_parameters

VOCABULARY, WIDTH, INNER, BLOCKS, EPSILON = 61, 64, 96, 2, 1e-6
ATTENTION = AttentionShape(heads=4, kv_heads=2, head_width=16, value_width=16)
OFFSETS = [0, 1, 38, 1024]


def parameters():
    p = transformer_parameters(
        ATTENTION, VOCABULARY, WIDTH, INNER, BLOCKS, (0.3, 0.2, 0.2, 0.2)
    )
    return p.add("head.weight", VOCABULARY, WIDTH, scale=0.2)


def step(made, dtype, ids):
    """Value and gradients in `dtype`, from parameters rounded to fp32."""
    p = {n: t.detach().float().to(dtype).requires_grad_() for n, t in made.items()}
    z = model_logits(ids, p, OFFSETS, ATTENTION, BLOCKS, EPSILON)
    value = cross_entropy(z, ids, OFFSETS, LossShape())
    value.backward()
    return {"loss": value.detach()} | {n: t.grad for n, t in p.items()}


def main():
    torch.set_num_threads(1)
    ids = [(31 * i * i + 7919 * i + 5) % 10007 % VOCABULARY for i in range(OFFSETS[-1])]
    p = parameters()
    exact, single = (step(p.made, dtype, ids) for dtype in (torch.float64, torch.float32))
    errors = {n: float((single[n].double() - g).norm() / g.norm()) for n, g in exact.items()}
    sizes = dict(vocabulary=VOCABULARY, features=WIDTH, inner=INNER, blocks=BLOCKS, epsilon=EPSILON)
    configuration = sizes | asdict(ATTENTION) | dict(offsets=OFFSETS, ids=ids)
    rows = lambda d: "{\n" + ",\n".join(f"  {json.dumps(k)}: {v}" for k, v in d.items()) + "\n}"
    described = "[\n" + ",\n".join("  " + json.dumps(d) for d in p.described) + "\n]"
    (HERE / "precision.json").write_text(
        f'{{\n"configuration": {json.dumps(configuration)},\n"parameters": {described},\n'
        f'"errors": {rows(errors)}\n}}\n'
    )
    for name, error in errors.items():
        print(f"{name:24} {error:.2e}")


if __name__ == "__main__":
    main()
