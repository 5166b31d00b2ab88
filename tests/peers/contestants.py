"""Who takes part: attntune, and every other implementation that is here and does the problem.

A contestant is a name and a function of (q, k, v) that gives O as [batch, heads, rows, columns].
One that raises when it is first called is left out, and its reason is kept.
"""

import os
import pathlib
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime" / "python"))

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "mem-efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


def ours(p):
    import attntune

    arguments = {"enable_gqa": p.heads_q != p.heads_kv}
    if p.mask == "causal":
        arguments["causal"] = "bottom_right"
    elif p.mask == "causal_tl":
        arguments["is_causal"] = True
    elif p.mask == "window":
        arguments["window"] = p.window
    return lambda q, k, v: attntune.sdpa(q, k, v, **arguments)


def torch_backend(p, name):
    """torch's own causal mask is top-left; it is the bottom-right one where the lengths are equal."""
    causal = p.mask == "causal_tl" or (p.mask == "causal" and p.seq_q == p.seq_kv)
    if p.mask != "none" and not causal:
        return None
    gqa = p.heads_q != p.heads_kv

    def run(q, k, v):
        with sdpa_kernel(BACKENDS[name]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                    enable_gqa=gqa)
    return run


def flex(p):
    """FlexAttention, compiled, with the mask as a block mask made once."""
    if p.mask == "none":
        return None
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    left, right, shift = p.sides()
    block_mask = create_block_mask(
        lambda b, h, i, j: (j - i - shift <= right) & (j - i - shift >= -left),
        None, None, p.seq_q, p.seq_kv, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=block_mask,
                                    enable_gqa=p.heads_q != p.heads_kv)


def aten_flash_window(p):
    """The flash kernel inside torch with its window arguments, which SDPA does not pass on."""
    if p.mask != "window" or p.heads_q != p.heads_kv:
        return None
    left, right = (None if side < 0 else side for side in p.window)

    def run(q, k, v):
        o = torch.ops.aten._flash_attention_forward(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, None, p.seq_q, p.seq_kv,
            0.0, False, False, window_size_left=left, window_size_right=right)[0]
        return o.transpose(1, 2)
    return run


def _bshd(p, function):
    def run(q, k, v):
        o = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                     causal=p.mask == "causal",
                     window_size=p.window if p.mask == "window" else (-1, -1))
        return (o[0] if isinstance(o, tuple) else o).transpose(1, 2)
    return run


def flash_attn(p):
    from flash_attn import flash_attn_func
    return _bshd(p, flash_attn_func) if p.mask != "causal_tl" else None


def flash_attn_3(p):
    from flash_attn_interface import flash_attn_func
    return _bshd(p, flash_attn_func) if p.mask != "causal_tl" else None


def flashinfer(p):
    from flashinfer import single_prefill_with_kv_cache

    if p.batch != 1 or p.mask not in ("none", "causal"):
        return None

    def run(q, k, v):
        o = single_prefill_with_kv_cache(q[0].transpose(0, 1), k[0].transpose(0, 1),
                                         v[0].transpose(0, 1), causal=p.mask == "causal")
        return o.transpose(0, 1).unsqueeze(0)
    return run


CUDA = {"attntune": ours, "cudnn": lambda p: torch_backend(p, "cudnn"),
        "flash": lambda p: torch_backend(p, "flash"),
        "mem-efficient": lambda p: torch_backend(p, "mem-efficient"),
        "math": lambda p: torch_backend(p, "math"), "flex": flex,
        "flash-window": aten_flash_window, "flash-attn": flash_attn, "flash-attn-3": flash_attn_3,
        "flashinfer": flashinfer}
CPU = {"attntune": ours, "flash": lambda p: torch_backend(p, "flash"),
       "math": lambda p: torch_backend(p, "math")}

# The math path keeps all scores; it is asked only where they are small.
MATH_MAX_BYTES = 4 << 30


def gather(problem, qkv, device, only):
    """{name: function} of those that ran once, and {name: reason} of those that did not."""
    running, absent = {}, {}
    for name, make in (CUDA if device == "cuda" else CPU).items():
        if only and name not in only and name != "attntune":
            continue
        scores = 4 * problem.batch * problem.heads_q * problem.seq_q * problem.seq_kv
        if name == "math" and scores > MATH_MAX_BYTES:
            absent[name] = "its scores would not fit"
            continue
        try:
            function = make(problem)
            if function is None:
                absent[name] = "does not do this problem"
                continue
            function(*qkv)
            if device == "cuda":
                torch.cuda.synchronize()
            running[name] = function
        except Exception as failure:  # whatever another library raises keeps it out, no more
            absent[name] = f"{type(failure).__name__}: {str(failure).splitlines()[0][:100]}"
            if name == "attntune" and not os.environ.get("PEERS_WITHOUT_OURS"):
                raise
    return running, absent
