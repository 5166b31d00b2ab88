#!/usr/bin/env python3
"""attntune beside every other attention that is installed: speed and error, in one process.

    peers.py PROBLEM|@FILE... [--device cuda|cpu] [--rounds 21] [--only NAME,NAME] [--hot]
             [--sustained SECONDS] [--threads N] [--jsonl FILE]

All contestants of a problem use the same tensors, layout and timing, interleaved round by round
with one untimed call after each switch. A cell is the median of the per-round ratios peer / ours
with its interval; over 1 attntune is faster. An interval across 1 is a tie. --sustained holds each
contestant alone as well: at a card's power limit, interleaving flatters the hungrier kernel.
"""

import argparse
import json
import math
import statistics
import sys

import torch

import contestants
import problems
import timing


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="+")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="")
    parser.add_argument("--hot", action="store_true", help="one set of tensors, cached")
    parser.add_argument("--sustained", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--jsonl", default="")
    return parser.parse_args()


def lines(words):
    for word in words:
        if not word.startswith("@"):
            yield word
            continue
        with open(word[1:], encoding="utf-8") as file:
            yield from (line.strip() for line in file
                        if line.strip() and not line.startswith(("#", "[")))


def measure(problem, options):
    """A list of rows, attntune's first."""
    device = options.device
    cold = 0 if options.hot else (2 * 64 << 20 if device == "cuda" else 2 * 320 << 20)
    sets = problems.copies(problem, device, cold)
    only = set(filter(None, options.only.split(",")))
    functions, absent = contestants.gather(problem, sets[0], device, only)
    errors = {name: problems.error(problem, sets[0], f(*sets[0])) for name, f in functions.items()}
    clocked = (timing.Cuda if device == "cuda" else timing.Cpu)(functions, sets)
    seconds, clocks = timing.interleaved(clocked, list(functions), options.rounds)
    rows = []
    for name in functions:
        ratios = [b / a for a, b in zip(seconds["attntune"], seconds[name])]
        middle, low, high = timing.interval(ratios)
        time_s = statistics.median(seconds[name])
        rows.append({"problem": problem.text, "device": device, "name": name, "us": 1e6 * time_s,
                     "tflops": problem.flops() / time_s / 1e12, "ratio": middle, "low": low,
                     "high": high, "tie": low < 1 < high and name != "attntune",
                     "error": errors[name],
                     "clock_mhz": statistics.median(c[0] for c in clocks),
                     "power_w": statistics.median(c[1] for c in clocks)})
        if options.sustained and device == "cuda":
            rows[-1]["sustained"] = [
                {"tflops": problem.flops() / s / 1e12, "clock_mhz": mhz, "power_w": watt}
                for s, mhz, watt in timing.sustained(clocked, name, options.sustained)]
    return rows, absent


def show(rows, absent):
    print(rows[0]["problem"])
    for row in rows:
        text = (f"  {row['name']:<14} {row['us']:>10.1f} us {row['tflops']:>8.2f} TFLOP/s  "
                f"x{row['ratio']:.3f} [{row['low']:.3f} {row['high']:.3f}]"
                f"{' tie' if row['tie'] else ''}  error {row['error']:.2e}")
        if not math.isnan(row["clock_mhz"]):
            text += f"  {row['clock_mhz']:.0f} MHz {row['power_w']:.0f} W"
        for alone in row.get("sustained", []):
            text += f"  | alone {alone['tflops']:.1f} @ {alone['clock_mhz']:.0f}"
        print(text)
    if absent:
        print("  absent: " + "; ".join(f"{name} ({why})" for name, why in absent.items()))
    sys.stdout.flush()


def main():
    options = arguments()
    torch.set_grad_enabled(False)
    if options.threads:
        torch.set_num_threads(options.threads)
    for text in lines(options.problem):
        rows, absent = measure(problems.parse(text), options)
        show(rows, absent)
        if options.jsonl:
            with open(options.jsonl, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
