#!/usr/bin/env python3
"""One training step of a Qwen3-shaped model in PyTorch on the CPU: seconds and bytes.

Measures one point per process and prints one JSON line. README.md has the commands.
"""

import argparse
import ctypes
import gc
import json
import resource
import time

import torch
import transformers

METHODS = {
    "plain": "backpropagation as it is",
    "checkpoint": "gradient checkpointing, a layer at a time",
    "streambp": "the PyTorch package streambp, used as its README says",
    "streambp_no_mask": "the same without its tokens x tokens mask",
}
WARM_UP_TOKENS = 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--intermediate", type=int, default=1536)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--logit-chunk", type=int, default=100, help="streambp: rows of the head")
    parser.add_argument("--chunk", type=int, default=0, help="streambp: rows; 0: a third of all")
    parser.add_argument("--limit-gib", type=float, default=0, help="refuse more data than this")
    return parser.parse_args()


def counter():
    """The preloaded peak_counter, or None."""
    library = ctypes.CDLL(None)
    try:
        library.peak_counter_live.restype = library.peak_counter_peak.restype = ctypes.c_long
    except AttributeError:
        return None
    return library


def build_model(a):
    config = transformers.Qwen3Config(
        vocab_size=a.vocabulary,
        hidden_size=a.hidden,
        num_hidden_layers=a.layers,
        num_attention_heads=a.heads,
        num_key_value_heads=a.kv_heads,
        head_dim=a.hidden // a.heads,
        intermediate_size=a.intermediate,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        use_cache=False,
        attn_implementation="sdpa",
    )
    return transformers.Qwen3ForCausalLM(config).float().train()


def without_mask(stream_model):
    """streambp builds a (tokens, tokens) mask for the first, whole forward. A chunk that starts at
    row 0 needs none: torch's causal flag says the same."""
    masked = stream_model.StreamAttention._generate_causal_mask
    attention = torch.nn.functional.scaled_dot_product_attention

    def mask_or_none(self, start, end, dtype, device):
        return masked(self, start, end, dtype, device) if start else None

    def causal_unless_masked(q, k, v, attn_mask=None, is_causal=False, **others):
        causal = is_causal or attn_mask is None
        return attention(q, k, v, attn_mask=attn_mask, is_causal=causal, **others)

    stream_model.StreamAttention._generate_causal_mask = mask_or_none
    torch.nn.functional.scaled_dot_product_attention = causal_unless_masked


def wrap(model, a):
    """The model whose step is the method's."""
    if a.method == "checkpoint":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if not a.method.startswith("streambp"):
        return model
    from streambp import stream_model

    if a.method == "streambp_no_mask":
        without_mask(stream_model)
    wrapped = stream_model.StreamModel(
        model,
        gradient_accumulation_steps=1,
        logits_chunk_size=a.logit_chunk,
        checkpoint_chunk_size=a.chunk or -(-a.tokens // 3),
        stream_checkpoint=True,
    )
    wrapped.gradient_checkpointing_enable()
    return wrapped


def step(model, tokens, vocabulary):
    """Adds to the gradients; returns the loss. streambp's forward has its backward inside."""
    ids = torch.randint(vocabulary, (1, tokens), generator=torch.Generator().manual_seed(1))
    loss = model(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        labels=ids.clone(),
        use_cache=False,
        return_dict=True,
    ).loss
    if loss.requires_grad:
        loss.backward()
    return loss.item()


def measure(a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    bytes_of = counter()
    model = build_model(a)
    parameters = list(model.parameters())
    stepping = wrap(model, a)
    for p in parameters:
        p.grad = torch.zeros_like(p)
    step(stepping, WARM_UP_TOKENS, a.vocabulary)
    gc.collect()
    if a.limit_gib:
        limit = int(a.limit_gib * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    result = dict(seconds=[], live_bytes=None, loss=None)
    before = 0
    if bytes_of:
        bytes_of.peak_counter_reset()
        before = bytes_of.peak_counter_live()  # weights, gradients and what torch keeps for itself
    for _ in range(a.repetitions):
        for p in parameters:
            p.grad.zero_()
        start = time.perf_counter()
        result["loss"] = step(stepping, a.tokens, a.vocabulary)
        result["seconds"].append(round(time.perf_counter() - start, 4))
    if bytes_of:
        result["live_bytes"] = bytes_of.peak_counter_peak() - before
    result["parameters"] = sum(p.numel() for p in parameters)
    return result


if __name__ == "__main__":
    a = arguments()
    try:
        result = measure(a)
    except (RuntimeError, MemoryError) as error:  # torch reports a refused allocation as the former
        result = dict(error=str(error)[:200])
    versions = dict(torch=torch.__version__, transformers=transformers.__version__)
    print(json.dumps(vars(a) | result | versions), flush=True)
