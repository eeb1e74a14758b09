"""Checks the formulas against torch.nn and transformers, in fp64.

transformers computes rotary angles, RMS norms and its loss in fp32 whatever the model's type, so
these three are replaced here by fp64 ones; attention, MLP, residuals and labels are its own.
"""

import math
from itertools import pairwise
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

import formulas
from formulas import IGNORED


def assert_close(ours, theirs, what, tolerance=1e-10):
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert error < tolerance, (what, error)


def check_row_operators():
    x = torch.linspace(-6, 6, 37 * 16, dtype=torch.float64).sin().mul(3).reshape(37, 16)
    gain, bias = x[1] + 2, x[2]
    assert_close(formulas.gelu(x), F.gelu(x), "gelu")
    assert_close(formulas.gelu_tanh(x), F.gelu(x, approximate="tanh"), "gelu tanh")
    assert_close(formulas.silu(x), F.silu(x), "silu")
    assert_close(formulas.rms_norm(x, gain, 1e-6), F.rms_norm(x, (16,), gain, 1e-6), "rms_norm")
    assert_close(
        formulas.layer_norm(x, gain, bias, 1e-5), F.layer_norm(x, (16,), gain, bias), "layer_norm"
    )


class Rotary(torch.nn.Module):
    """transformers' LlamaRotaryEmbedding in fp64."""

    def __init__(self, width, base):
        super().__init__()
        self.width, self.base = width, base

    def forward(self, x, position_ids):
        exponent = torch.arange(0, self.width, 2, dtype=torch.float64) / self.width
        angle = position_ids[..., None].double() / self.base**exponent
        angle = torch.cat([angle, angle], dim=-1)
        return angle.cos(), angle.sin()


def check_attention(shape, offsets, parameters):
    """Plain and with biases, sample by sample, against LlamaAttention and Qwen3Attention."""
    size = dict(
        hidden_size=16,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_width,
    )
    x = torch.linspace(0, 300, offsets[-1] * 16, dtype=torch.float64).sin().reshape(-1, 16)
    x.requires_grad_()
    for config, layer in ((LlamaConfig, LlamaAttention), (Qwen3Config, Qwen3Attention)):
        for bias in (False, True):
            p = parameters(shape, bias=bias).made
            c = config(**size, attention_bias=bias, attn_implementation="sdpa")
            theirs = layer(c, layer_idx=0).double()
            theirs.q_norm = theirs.k_norm = torch.nn.Identity()
            named = dict(theirs.named_parameters())
            theirs_of = {n: f"{n[1]}_proj.{'weight' if n[0] == 'w' else 'bias'}" for n in p}
            for name, t in p.items():
                named[theirs_of[name]].data.copy_(t)
            y = torch.cat(
                [
                    theirs(
                        x[None, a:b],
                        Rotary(shape.head_width, shape.rotary_base)(x, torch.arange(b - a)[None]),
                        None,
                    )[0][0]
                    for a, b in pairwise(offsets)
                ]
            )
            ours = formulas.attention(x, p, offsets, shape)
            dy = torch.cos(torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape)
            assert_close(ours, y, layer.__name__)
            of_ours = torch.autograd.grad(ours, [x, *p.values()], dy)
            of_theirs = torch.autograd.grad(y, [x, *(named[theirs_of[name]] for name in p)], dy)
            for name, a, b in zip(["x", *p], of_ours, of_theirs):
                assert_close(a, b, (layer.__name__, name))


def check_attention_of_one(shapes):
    """Masks, sinks and softcap: against torch's attention with a mask (sinks: one key more, whose
    logit is the sink and whose value is 0) and against transformers' Gemma 2 (fp32 inside)."""
    rows, width = 23, shapes[0].head_width
    m = torch.linspace(0, 500, 8 * rows * width, dtype=torch.float64).sin().mul(2)
    q, k, v = m.reshape(rows, 8, width).split([4, 2, 2], dim=1)
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.float64)
    for shape in shapes:
        mask = torch.full((rows, rows), -math.inf, dtype=torch.float64)
        for i in range(rows):
            first = max(0, i - shape.window + 1) if shape.window else 0
            mask[i, first : i + 1 if shape.causal else rows] = 0
        batched = [t.transpose(0, 1)[None] for t in (q, k, v)]
        ours = formulas.attention_of_one(q, k, v, shape)
        if shape.softcap:
            module = SimpleNamespace(num_key_value_groups=2, training=False, head_dim=width)
            theirs, _ = modeling_gemma2.eager_attention_forward(
                module, *batched, mask[None, None], softcap=shape.softcap
            )
            assert_close(ours, theirs[0], shape, 1e-6)
            continue
        theirs = F.scaled_dot_product_attention(*batched, mask, enable_gqa=True)
        assert_close(ours, theirs[0].transpose(0, 1), shape)

        ours = formulas.attention_of_one(q, k, v, shape, sinks)
        longer = [F.pad(t, (0, 0, 0, 1)) for t in batched[1:]]
        mask = torch.cat([mask.expand(4, -1, -1), sinks[:, None, None].expand(-1, rows, 1)], -1)
        theirs = F.scaled_dot_product_attention(batched[0], *longer, mask, enable_gqa=True)
        assert_close(ours, theirs[0].transpose(0, 1), (shape, "sinks"))


def llama(parameters, shape, blocks, epsilon, inner):
    """LlamaForCausalLM that holds these parameters, all of it in fp64."""
    vocabulary, width = parameters["embedding.table"].shape
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            intermediate_size=inner,
            num_hidden_layers=blocks,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_width,
            rms_norm_eps=epsilon,
            tie_word_embeddings=False,
            use_cache=False,
            attn_implementation="sdpa",
        )
    ).double()
    model.model.rotary_emb = Rotary(shape.head_width, shape.rotary_base)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, LlamaRMSNorm):
                norm = torch.nn.RMSNorm(width, epsilon, dtype=torch.float64)
                setattr(module, name, norm)
    named = dict(model.named_parameters())
    renamed = {their_name(name): name for name in parameters}
    assert set(renamed) == set(named), set(renamed) ^ set(named)
    for theirs, ours in renamed.items():
        named[theirs].data.copy_(parameters[ours])
    return model, {ours: named[theirs] for theirs, ours in renamed.items()}


def their_name(name):
    for ours, theirs in (
        ("embedding.table", "model.embed_tokens.weight"),
        ("head.weight", "lm_head.weight"),
        ("blocks.", "model.layers."),
        ("norm1.gain", "input_layernorm.weight"),
        ("norm2.gain", "post_attention_layernorm.weight"),
    ):
        name = name.replace(ours, theirs)
    if name == "norm.gain":
        return "model.norm.weight"
    for letter in "qkvo":
        name = name.replace(f"attention.w{letter}", f"self_attn.{letter}_proj.weight")
    for part in ("gate", "up", "down"):
        name = name.replace(f"mlp.{part}", f"mlp.{part}_proj.weight")
    return name


def check_model(value, gradients, batch, parameters, shape, blocks, epsilon, inner):
    """The plain model against LlamaForCausalLM run sample by sample: labels shifted as it does, the
    sum divided by the number of counted tokens; gradients too."""
    model, named = llama(parameters, shape, blocks, epsilon, inner)
    total, count, in_fp32 = 0, 0, 0
    for a, b in pairwise(batch["offsets"]):
        if b == a:
            continue
        ids, labels = (torch.tensor(batch[n][a:b])[None] for n in ("ids", "labels"))
        out = model(input_ids=ids)
        targets = F.pad(labels, (0, 1), value=IGNORED)[0, 1:]
        total += F.cross_entropy(out.logits[0], targets, ignore_index=IGNORED, reduction="sum")
        count += (targets != IGNORED).sum().item()
        in_fp32 += model(input_ids=ids, labels=labels, num_items_in_batch=1).loss.item()
    theirs = total / count
    theirs.backward()
    assert_close(value, theirs, "model")
    assert abs(in_fp32 / count - value.item()) < 1e-5

    for name, gradient in gradients.items():
        assert_close(gradient, named[name].grad, name)


def check_smoothing(value, raw, batch, smoothing):
    targets = formulas.counted(batch["labels"], batch["offsets"])
    theirs = F.cross_entropy(
        raw[[t - 1 for t in targets]],
        torch.tensor([batch["labels"][t] for t in targets]),
        label_smoothing=smoothing,
    )
    assert_close(value, theirs, "label smoothing")
