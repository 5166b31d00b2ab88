"""The structs of attntune.h, and how torch tensors fill them."""

import ctypes
from ctypes import c_char, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

MASKS = ("none", "causal", "causal_tl", "window")
CHOICE_ORIGINS = ("user", "system", "user-near", "system-near", "arch", "default", "reference")
FEATURE_LSE = 1
TF32 = 3


class Device(ctypes.Structure):
    _fields_ = [("backend", c_int), ("ordinal", c_int32)]


class Problem(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in
                ("op", "dtype", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim",
                 "head_dim_v", "mask", "window_left", "window_right")] + [
                    ("features", c_uint32), ("layout", c_int32), ("alignment", c_int32)]


class Tensors(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("scale", c_float),
                ("q", c_void_p), ("k", c_void_p), ("v", c_void_p), ("o", c_void_p),
                ("lse", c_void_p),
                ("q_stride", c_int64 * 3), ("k_stride", c_int64 * 3), ("v_stride", c_int64 * 3),
                ("o_stride", c_int64 * 3)]


class Choice(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("family", c_char * 64), ("configuration", c_char * 1024),
                ("origin", c_int), ("distance", c_double), ("stale", c_char * 128),
                ("expected_ns", c_double)]

    def __init__(self):
        super().__init__(size=ctypes.sizeof(Choice))


def _check_shapes(torch, q, k, v, enable_gqa):
    if any(t.dim() != 4 for t in (q, k, v)):
        raise ValueError("q, k and v have 3 or 4 dimensions: [batch,] heads, rows, columns")
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"q, k and v differ in dtype: {q.dtype}, {k.dtype}, {v.dtype}")
    if not q.device == k.device == v.device:
        raise ValueError(f"q, k and v are on different devices: {q.device}, {k.device}, {v.device}")
    if q.device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f"attntune has no kernels for {q.device.type} tensors")
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ValueError(f"shapes do not fit: q {list(q.shape)}, k {list(k.shape)}, "
                         f"v {list(v.shape)}")
    if q.shape[1] != k.shape[1] and not enable_gqa:
        raise ValueError(f"q has {q.shape[1]} heads and k {k.shape[1]}: pass enable_gqa=True")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.shape[3] > 1 and tensor.stride(3) != 1:
            raise ValueError(f"the last dimension of {name} is not contiguous; call "
                             f"{name}.contiguous()")


def _alignment(tensors):
    """0 (a16) if all bases and strides are multiples of 16 bytes, else 1 (a1)."""
    for t in tensors:
        if t.data_ptr() % 16:
            return 1
        if any(t.shape[i] > 1 and t.stride(i) * t.element_size() % 16 for i in range(3)):
            return 1
    return 0


def problem_of(torch, q, k, v, mask, enable_gqa, lse, precision):
    _check_shapes(torch, q, k, v, enable_gqa)
    dtypes = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
    if q.dtype not in dtypes:
        raise NotImplementedError(f"attntune has no kernels for {q.dtype}")
    if precision not in (None, "tf32") or (precision and q.dtype != torch.float32):
        raise ValueError(f'precision is None or, for float32 tensors, "tf32"; not {precision!r} '
                         f"for {q.dtype}")
    name, left, right = mask
    dtype = TF32 if precision else dtypes[q.dtype]
    return Problem(dtype=dtype, batch=q.shape[0], heads_q=q.shape[1],
                   heads_kv=k.shape[1], seq_q=q.shape[2], seq_kv=k.shape[2], head_dim=q.shape[3],
                   head_dim_v=v.shape[3], mask=MASKS.index(name), window_left=left,
                   window_right=right, features=FEATURE_LSE if lse else 0,
                   alignment=_alignment((q, k, v)))


def tensors_of(problem, q, k, v, o):
    """The tensors without addresses and scale; an O that is not aligned makes the problem so."""
    if _alignment((o,)):
        problem.alignment = 1
    tensors = Tensors(size=ctypes.sizeof(Tensors))
    for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
        setattr(tensors, name + "_stride", (c_int64 * 3)(*tensor.stride()[:3]))
    return tensors
