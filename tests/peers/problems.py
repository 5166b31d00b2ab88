"""Problems in attntune's text form, their tensors, and float64 answers to a part of them."""

import math
import re
from dataclasses import dataclass

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@dataclass
class Problem:
    text: str
    dtype: torch.dtype
    batch: int
    heads_q: int
    heads_kv: int
    seq_q: int
    seq_kv: int
    dim: int
    dim_v: int
    mask: str = "none"
    window: tuple = (-1, -1)
    layout: str = "bhsd"

    def sides(self):
        """(left, right, shift): query i sees key j iff -left <= j - i - shift <= right."""
        shift = 0 if self.mask == "causal_tl" else self.seq_kv - self.seq_q
        left = math.inf if self.mask != "window" or self.window[0] < 0 else self.window[0]
        right = {"none": math.inf, "causal": 0, "causal_tl": 0}.get(self.mask, self.window[1])
        return left, math.inf if right < 0 else right, shift

    def seen(self, rows, device):
        """Boolean [rows, seq_kv] for the given query rows."""
        left, right, shift = self.sides()
        distance = (torch.arange(self.seq_kv, device=device)[None, :] -
                    rows[:, None].to(device) - shift)
        return (distance >= -left) & (distance <= right)

    def pairs(self):
        """Seen (query, key) pairs, so that masked work is never counted."""
        left, right, shift = self.sides()
        i = torch.arange(self.seq_q, dtype=torch.float64) + shift
        first = torch.clamp(i - left, min=0)
        last = torch.clamp(i + right, max=self.seq_kv - 1)
        return torch.clamp(last - first + 1, min=0).sum().item() * self.batch * self.heads_q

    def flops(self):
        return 2 * (self.dim + self.dim_v) * self.pairs()


def parse(text):
    """A Problem of `fwd:DTYPE:bN:hN:sN:dN...`; ValueError names the word that is unknown."""
    fields = {}
    for word in text.split(":")[1:]:
        number = re.fullmatch(r"(hq|hkv|h|sq|sk|s|dv|d|b)(\d+)", word)
        window = re.fullmatch(r"window(-?\d+),(-?\d+)", word)
        if number:
            fields[number[1]] = int(number[2])
        elif window:
            fields["mask"], fields["window"] = "window", (int(window[1]), int(window[2]))
        elif word in DTYPES:
            fields["dtype"] = DTYPES[word]
        elif word in ("causal", "causal_tl", "none"):
            fields["mask"] = word
        elif word in ("bhsd", "bshd"):
            fields["layout"] = word
        else:
            raise ValueError(f"{text}: peers.py does not know '{word}'")
    f = fields
    return Problem(text, f["dtype"], f["b"], f.get("hq", f.get("h")), f.get("hkv", f.get("h")),
                   f.get("sq", f.get("s")), f.get("sk", f.get("s")), f["d"], f.get("dv", f["d"]),
                   f.get("mask", "none"), f.get("window", (-1, -1)), f.get("layout", "bhsd"))


def tensors(problem, device, generator):
    """Random q, k, v as [batch, heads, rows, columns] views of the problem's layout."""
    p = problem

    def make(heads, rows, columns):
        if p.layout == "bshd":
            return torch.randn(p.batch, rows, heads, columns, device=device, dtype=p.dtype,
                               generator=generator).transpose(1, 2)
        return torch.randn(p.batch, heads, rows, columns, device=device, dtype=p.dtype,
                           generator=generator)

    return (make(p.heads_q, p.seq_q, p.dim), make(p.heads_kv, p.seq_kv, p.dim),
            make(p.heads_kv, p.seq_kv, p.dim_v))


def copies(problem, device, cold_bytes):
    """As many sets of tensors as together exceed cold_bytes, so that no call finds a cached one."""
    generator = torch.Generator(device=device).manual_seed(1)
    first = tensors(problem, device, generator)
    size = sum(t.numel() * t.element_size() for t in first)
    count = max(1, min(64, math.ceil(cold_bytes / max(size, 1))))
    return [first] + [tensors(problem, device, generator) for _ in range(count - 1)]


def error(problem, qkv, output, heads=4, rows=48):
    """||o - ref|| / ||ref|| in float64 over some rows of some heads of each batch end."""
    p = problem
    q, k, v = qkv
    at = torch.unique(torch.linspace(0, p.seq_q - 1, min(rows, p.seq_q)).long())
    difference = norm = 0.0
    for b in {0, p.batch - 1}:
        for h in torch.unique(torch.linspace(0, p.heads_q - 1, min(heads, p.heads_q)).long()):
            h = h.item()
            kv = h // (p.heads_q // p.heads_kv)
            logits = q[b, h, at].double() @ k[b, kv].double().T / math.sqrt(p.dim)
            logits = logits.masked_fill(~p.seen(at, q.device), -math.inf)
            want = torch.nan_to_num(logits.softmax(-1), nan=0.0) @ v[b, kv].double()
            difference += (output[b, h, at].double() - want).square().sum().item()
            norm += want.square().sum().item()
    return math.sqrt(difference / norm) if norm else math.sqrt(difference)
