#!/usr/bin/env python3
"""Writes torch_math.txt: what PyTorch's math path gives for a few dozen small problems.

    pip install torch numpy; python3 make_golden.py > torch_math.txt

Inputs are a formula of the element's index that the C test computes too, rounded to the problem's
dtype; everything after that is float64. A problem is its text form and scale, then o and lse as
[batch][head][row][dim] and [batch][head][row], one row a line.
"""
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

PROBLEMS = """
fwd:f32:b1:h1:s1:d8
fwd:f32:b1:h1:sq1:sk9:d8
fwd:f32:b1:h1:sq9:sk1:d8
fwd:f32:b2:h2:s7:d4
fwd:f32:b1:h2:sq5:sk8:d8:dv4
fwd:f32:b1:h2:sq8:sk5:d3:dv5
fwd:f32:b1:h1:s7:d8:causal
fwd:f32:b1:h2:sq4:sk9:d8:dv4:causal
fwd:f32:b1:h2:sq9:sk4:d8:dv4:causal
fwd:f32:b1:h1:s7:d8:causal_tl
fwd:f32:b1:h2:sq4:sk9:d8:dv4:causal_tl
fwd:f32:b1:h2:sq9:sk4:d8:dv4:causal_tl
fwd:f32:b1:h1:s9:d8:dv4:window2,0
fwd:f32:b1:h1:s9:d8:dv4:window0,2
fwd:f32:b1:h1:s9:d8:dv4:window1,1
fwd:f32:b1:h1:s9:d8:dv4:window0,0
fwd:f32:b1:h1:s9:d8:dv4:window-1,1
fwd:f32:b1:h1:s9:d8:dv4:window3,-1
fwd:f32:b1:h1:sq5:sk9:d8:dv4:window2,1
fwd:f32:b1:h1:sq9:sk5:d8:dv4:window2,1
fwd:f32:b1:hq4:hkv2:s5:d4
fwd:f32:b1:hq6:hkv2:sq3:sk6:d4:causal
fwd:f32:b2:hq3:hkv1:sq4:sk7:d4:dv3:window3,0
fwd:f32:b1:hq5:hkv1:sq1:sk9:d8
fwd:f16:b1:h2:s6:d8:dv4
fwd:f16:b1:h1:sq5:sk9:d8:causal
fwd:f16:b1:hq4:hkv2:s5:d4:window2,1
fwd:bf16:b1:h2:s6:d8:dv4
fwd:bf16:b1:h1:sq9:sk5:d8:causal
fwd:bf16:b1:hq4:hkv2:s5:d4:causal_tl
""".split()

SCALED = [("fwd:f32:b1:h1:s7:d8", 0.0), ("fwd:f32:b1:h1:s7:d8:causal", -0.5),
          ("fwd:f32:b1:h2:sq4:sk6:d8:dv4", 16.0), ("fwd:bf16:b1:h1:s7:d8", 4.0)]


def parse(text):
    p = {"dtype": text.split(":")[1], "mask": None}
    for word in text.split(":")[2:]:
        if word.startswith(("causal", "window")):
            p["mask"] = word
            continue
        name = word.rstrip("0123456789")
        p[name] = int(word[len(name):])
    hq, hkv = p.get("hq", p.get("h")), p.get("hkv", p.get("h"))
    sq, sk = p.get("sq", p.get("s")), p.get("sk", p.get("s"))
    return p, p["b"], hq, hkv, sq, sk, p["d"], p.get("dv", p["d"])


def tensor(which, shape, dtype):
    n = math.prod(shape)
    bits = [((i + 1) * 2654435761 + which * 974711711) % 2**32 >> 8 for i in range(n)]
    values = torch.tensor([b / 2**22 - 2 for b in bits], dtype=torch.float64)
    return values.to(DTYPES[dtype]).to(torch.float64).reshape(shape)


def seen(mask, sq, sk):
    """Which (row, key) pairs are seen; None: all, or what is_causal says."""
    if mask is None or mask == "causal_tl":
        return None
    off = torch.arange(sk)[None, :] - (torch.arange(sq)[:, None] + sk - sq)
    left, right = (-1, 0) if mask == "causal" else map(int, mask[len("window"):].split(","))
    see = torch.ones(sq, sk, dtype=torch.bool)
    if left >= 0:
        see &= off >= -left
    if right >= 0:
        see &= off <= right
    return see


def write(text, scale):
    p, b, hq, hkv, sq, sk, d, dv = parse(text)
    q = tensor(1, (b, hq, sq, d), p["dtype"])
    k = tensor(2, (b, hkv, sk, d), p["dtype"])
    v = tensor(3, (b, hkv, sk, dv), p["dtype"])
    see = seen(p["mask"], sq, sk)
    top_left = p["mask"] == "causal_tl"
    factor = 1 / math.sqrt(d) if scale is None else scale
    factor = float(torch.tensor(factor, dtype=torch.float32))  # the ABI's scale is a float
    with sdpa_kernel(SDPBackend.MATH):
        o = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=see, is_causal=top_left, scale=factor, enable_gqa=hq != hkv)
    logits = q @ k.repeat_interleave(hq // hkv, 1).transpose(-1, -2) * factor
    if top_left:
        see = torch.ones(sq, sk, dtype=torch.bool).tril()
    if see is not None:
        logits = logits.masked_fill(~see, -math.inf)
    lse = torch.logsumexp(logits, -1)
    print(text, "default" if scale is None else repr(scale))
    for row in o.reshape(-1, dv).tolist() + lse.reshape(-1, sq).tolist():
        print(" ".join(f"{x:.11g}" for x in row))


for text in PROBLEMS:
    write(text, None)
for text, scale in SCALED:
    write(text, scale)
