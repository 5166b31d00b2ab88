"""attntune: scaled dot-product attention by the kernel measured fastest on this machine.

    import attntune, torch
    o = attntune.sdpa(q, k, v, is_causal=True)      # CPU or CUDA tensors, on the current stream

Pure ctypes over libattntune.so, which is looked for in $ATTNTUNE_LIB, beside this package, in the
build folder of the source tree, and where the system's loader looks.
"""

import ctypes
import math

from ._library import Failure, check, context, library
from ._memory import FRESH, wish_huge_pages, workspace
from ._types import CHOICE_ORIGINS, Choice, Device, problem_of, tensors_of

__all__ = ["sdpa", "choice", "version", "Failure"]


def sdpa(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *,
         causal=None, window=None, return_lse=False, precision=None):
    """Attention of q [.., heads_q, seq_q, d] over k [.., heads_kv, seq_kv, d], v [.., seq_kv, dv].

    Three or four dimensions, f32, f16 or bf16, any strides with a contiguous last dimension.
    The positional arguments are those of torch.nn.functional.scaled_dot_product_attention.

    is_causal   what torch means: query i sees the keys 0..i (top-left).
    causal      "bottom_right" (flash-attn's: the last query sees all keys) or "top_left".
    window      (left, right): at most so many keys before and after the diagonal, which is
                aligned bottom-right; -1 for unbounded.
    scale       of the logits; None: 1/sqrt(d).
    enable_gqa  heads_q may be a multiple of heads_kv.
    precision   "tf32": products of float32 may take 11 bits, as exact as float16; None: as the
                tensors are (torch's allow_tf32 is not looked at).
    return_lse  also return the natural-log sum of exponentials, float32 [.., heads_q, seq_q].

    Rows that see no key are 0 with an LSE of -inf. Raises ValueError for arguments that make no
    sense, NotImplementedError for what attntune does not do, Failure for what went wrong below.
    """
    import torch

    _refuse(torch, (q, k, v), attn_mask, dropout_p)
    squeeze = q.dim() == 3
    if squeeze:
        q, k, v = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
    problem, o, lse, tensors = _call(torch, q, k, v, (is_causal, causal, window and tuple(window)),
                                     enable_gqa, return_lse, precision)
    tensors.scale = math.nan if scale is None else float(scale)
    if q.is_cuda:
        with torch.cuda.device(q.device):
            _run(torch, problem, tensors, q.device, torch.cuda.current_stream().cuda_stream)
    else:
        _run(torch, problem, tensors, q.device, None)
    if squeeze:
        o, lse = o.squeeze(0), lse.squeeze(0) if return_lse else None
    return (o, lse) if return_lse else o


def choice(q, k, v, is_causal=False, enable_gqa=False, *, causal=None, window=None,
           return_lse=False, precision=None):
    """What sdpa would run for these tensors: a dict of family, configuration, origin, ..."""
    import torch

    problem = problem_of(torch, q, k, v, _mask_of(q, k, is_causal, causal, window), enable_gqa,
                         return_lse, precision)
    found = Choice()
    ctx = context()
    check(ctx, library().attn_choice_get(ctx, ctypes.byref(problem), _device(q.device),
                                         ctypes.byref(found)))
    return {
        "family": found.family.decode(),
        "configuration": found.configuration.decode(),
        "origin": CHOICE_ORIGINS[found.origin],
        "distance": found.distance,
        "stale": found.stale.decode(),
        "expected_ns": found.expected_ns,
    }


def version():
    """The version of libattntune that is loaded, as "0.1.0"."""
    return library().attn_version().decode()


def _refuse(torch, tensors, attn_mask, dropout_p):
    if attn_mask is not None:
        raise NotImplementedError("attntune.sdpa takes no mask tensor; use is_causal, causal or "
                                  "window")
    if dropout_p:
        raise NotImplementedError("attntune.sdpa does no dropout")
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise NotImplementedError("attntune.sdpa computes no gradients; call it under "
                                  "torch.no_grad() or detach its inputs")


def _mask_of(q, k, is_causal, causal, window):
    """(mask name, left, right). With equal lengths both alignments are one mask."""
    if is_causal + (causal is not None) + (window is not None) > 1:
        raise ValueError("give one of is_causal, causal and window")
    if causal not in (None, "bottom_right", "top_left"):
        raise ValueError(f'causal is "bottom_right" or "top_left", not {causal!r}')
    if window is not None:
        left, right = (int(side) for side in window)
        return "window", left, right
    if is_causal or causal == "top_left":
        return ("causal" if q.shape[-2] == k.shape[-2] else "causal_tl"), 0, 0
    return ("causal" if causal else "none"), 0, 0


_known = {}  # what calls with tensors of one kind have in common: (problem, tensors)
_KNOWN_MAX = 1000


def _call(torch, q, k, v, mask, enable_gqa, return_lse, precision):
    """(problem, o, lse, tensors); checked and worked out once for each kind of tensors."""
    kind = (mask, enable_gqa, return_lse, precision,
            (q.data_ptr() | k.data_ptr() | v.data_ptr()) % 16,
            *((t.dtype, t.device, t.shape, t.stride()) for t in (q, k, v)))
    known = _known.get(kind)
    problem = known[0] if known else problem_of(torch, q, k, v, _mask_of(q, k, *mask), enable_gqa,
                                                return_lse, precision)
    o = _empty_output(torch, q, v)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device) if return_lse else None
    if not known:
        if len(_known) == _KNOWN_MAX:
            _known.clear()
        known = _known[kind] = problem, tensors_of(problem, q, k, v, o)
    tensors = type(known[1]).from_buffer_copy(known[1])
    tensors.q, tensors.k, tensors.v, tensors.o = (t.data_ptr() for t in (q, k, v, o))
    tensors.lse = lse.data_ptr() if return_lse else None
    return problem, o, lse, tensors


def _empty_output(torch, q, v):
    """O with q's order of heads and rows in memory."""
    batch, heads, rows, _ = q.shape
    turned = q.stride(1) < q.stride(2)
    outer = (rows, heads) if turned else (heads, rows)
    o = torch.empty(batch, *outer, v.shape[-1], dtype=q.dtype, device=q.device)
    size = o.numel() * o.element_size()
    if o.device.type == "cpu" and size >= FRESH:
        wish_huge_pages(o.data_ptr(), size)
    return o.transpose(1, 2) if turned else o


def _device(device):
    return Device(1, device.index or 0) if device.type == "cuda" else Device(0, 0)


def _run(torch, problem, tensors, device, stream):
    lib, ctx, handle = library(), context(), _device(device)
    size = lib.attn_workspace_size(ctx, ctypes.byref(problem), handle)
    if device.type == "cpu":
        start = workspace(size)
    else:  # torch keeps freed memory, and knows which stream still uses it
        space = torch.empty(size + 256, dtype=torch.uint8, device=device)
        start = (space.data_ptr() + 255) // 256 * 256
    check(ctx, lib.attn_run(ctx, ctypes.byref(problem), handle, ctypes.byref(tensors), start, size,
                            stream))
