"""attntune.sdpa against torch's math path in float64: values, strides, masks, refusals.

Exits with 77 where torch is missing. Runs on the CPU, and on a GPU too where there is one.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["ATTN_SOURCE"], "runtime", "python"))
try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)
import attntune

BOUNDS = {torch.float32: 2e-5, torch.float16: 1.2e-3, torch.bfloat16: 1e-2}


def expected(q, k, v, mask, scale):
    """Float64 attention; mask is True where a query sees a key. Empty rows are 0."""
    q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    logits = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logits = logits.masked_fill(~mask, -torch.inf)
    lse = logits.logsumexp(-1)
    return torch.nan_to_num(logits.softmax(-1), nan=0.0) @ v, lse


def mask_of(sq, sk, shift, left, right, device):
    distance = (torch.arange(sk, device=device)[None, :] -
                torch.arange(sq, device=device)[:, None] - shift)
    seen = torch.ones(sq, sk, dtype=torch.bool, device=device)
    if left >= 0:
        seen &= distance >= -left
    if right >= 0:
        seen &= distance <= right
    return seen


# name, arguments, (shift, left, right) as functions of the lengths
MASKS = [
    ({}, lambda sq, sk: (0, -1, -1)),
    ({"is_causal": True}, lambda sq, sk: (0, -1, 0)),
    ({"causal": "bottom_right"}, lambda sq, sk: (sk - sq, -1, 0)),
    ({"window": (7, 3)}, lambda sq, sk: (sk - sq, 7, 3)),
]


def check_values(device, dtype):
    torch.manual_seed(0)
    worst = 0.0
    for arguments, geometry in MASKS:
        for sq, sk in ((64, 64), (33, 70), (70, 33), (1, 50)):
            for layout in ("bhsd", "bshd", "odd"):
                make = lambda heads, rows: torch.randn(2, heads, rows, 64, device=device,
                                                       dtype=dtype)
                if layout == "bshd":
                    make = lambda heads, rows: torch.randn(2, rows, heads, 64, device=device,
                                                           dtype=dtype).transpose(1, 2)
                if layout == "odd":
                    make = lambda heads, rows: torch.randn(2, heads, rows, 67, device=device,
                                                           dtype=dtype)[..., 2:66]
                q, k, v = make(6, sq), make(3, sk), make(3, sk)
                scale = None if layout == "bhsd" else -0.3
                o, lse = attntune.sdpa(q, k, v, enable_gqa=True, scale=scale, return_lse=True,
                                       **arguments)
                want, want_lse = expected(q, k, v,
                                          mask_of(sq, sk, *geometry(sq, sk), device), scale)
                error = ((o.double() - want).norm() / want.norm().clamp_min(1e-30)).item()
                worst = max(worst, error)
                assert error <= BOUNDS[dtype], (device, dtype, arguments, sq, sk, layout, error)
                assert torch.allclose(lse.double(), want_lse, rtol=1e-4, atol=1e-4), (
                    device, dtype, arguments, sq, sk, layout)
    print(f"{device} {dtype}: worst error {worst:.2e}")


def check_like_torch(device):
    q, k, v = (torch.randn(1, 4, 128, 64, device=device) for _ in range(3))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(attntune.sdpa(q, k, v, is_causal=True), want, atol=1e-4)
    assert torch.allclose(attntune.sdpa(q[0], k[0], v[0], is_causal=True), want[0], atol=1e-4)


def raises(kind, says, call):
    try:
        call()
    except kind as error:
        assert says in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__} that says {says!r}")


def check_refusals(device):
    q = torch.randn(1, 4, 16, 32, device=device)
    k = torch.randn(1, 2, 16, 32, device=device)
    raises(NotImplementedError, "mask tensor", lambda: attntune.sdpa(q, q, q, attn_mask=q))
    raises(NotImplementedError, "dropout", lambda: attntune.sdpa(q, q, q, dropout_p=0.1))
    raises(NotImplementedError, "gradients",
           lambda: attntune.sdpa(q.clone().requires_grad_(), q, q))
    raises(NotImplementedError, "float64", lambda: attntune.sdpa(*[q.double()] * 3))
    raises(ValueError, "enable_gqa", lambda: attntune.sdpa(q, k, k))
    raises(ValueError, "one of", lambda: attntune.sdpa(q, q, q, is_causal=True, window=(1, 0)))
    raises(ValueError, "bottom_right", lambda: attntune.sdpa(q, q, q, causal="left"))
    raises(ValueError, "contiguous",
           lambda: attntune.sdpa(*[torch.randn(1, 4, 32, 16, device=device)
                                   .transpose(2, 3)] * 3))
    raises(ValueError, "dtype", lambda: attntune.sdpa(q, q.half(), q))
    raises(ValueError, "precision", lambda: attntune.sdpa(*[q.half()] * 3, precision="tf32"))
    raises(ValueError, "precision", lambda: attntune.sdpa(q, q, q, precision="f16"))
    raises(attntune.Failure, "ERR_INVALID",
           lambda: attntune.sdpa(q, q, q, scale=float("inf")))


def check_tf32(device):
    """Within what products of 11 bits allow, and a problem of its own."""
    q, k, v = (torch.randn(1, 4, 200, 64, device=device) for _ in range(3))
    o = attntune.sdpa(q, k, v, precision="tf32")
    want = expected(q, k, v, torch.ones(200, 200, dtype=torch.bool, device=device), None)[0]
    error = ((o.double() - want).norm() / want.norm()).item()
    assert error < 2e-3, error
    print(f"{device} tf32: error {error:.2e}")


def main():
    devices = [("cpu", [torch.float32])]
    if torch.cuda.is_available():
        devices.append(("cuda", [torch.float16, torch.bfloat16, torch.float32]))
    for device, dtypes in devices:
        for dtype in dtypes:
            check_values(device, dtype)
        check_like_torch(device)
        check_refusals(device)
        check_tf32(device)
    found = attntune.choice(*[torch.randn(1, 4, 64, 64)] * 3, is_causal=True)
    assert found["family"].startswith("cpu/"), found
    print("attntune", attntune.version(), found["family"], found["origin"])


if __name__ == "__main__":
    main()
