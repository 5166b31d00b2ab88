#!/bin/bash
# ladder.sh [OPTION...] [PROBLEM...]: the CPU ladder of the second write-up, measured here: v0 to v7
# (cpu/loop_forward: "config 1" to "config 8") and the defaults, cpu/simd_forward's among them, in
# one interleaved `attntune bench`, which takes the options. The table of versions is in
# performance.md. ATTNTUNE names the program.
set -u
case "$*" in *fwd:*) ;; *) set -- "$@" fwd:f32:b1:h4:s1024:d64:causal ;; esac

versions=(
    "TASK=call ROWS=1 KEYS=1024 PAD=0 EXP=libm MATH=strict"
    "TASK=call ROWS=1 KEYS=1024 PAD=0 EXP=libm MATH=associative"
    "TASK=call ROWS=1 KEYS=1024 PAD=0 EXP=libm MATH=fast"
    "TASK=call ROWS=1 KEYS=1024 PAD=1 EXP=libm MATH=fast"
    "TASK=call ROWS=1 KEYS=1024 PAD=1 EXP=libmvec MATH=fast"
    "TASK=call ROWS=1 KEYS=1024 PAD=1 EXP=polynomial MATH=fast"
    "TASK=head ROWS=1 KEYS=1024 PAD=1 EXP=polynomial MATH=fast"
    "TASK=tile ROWS=32 KEYS=64 PAD=1 EXP=polynomial MATH=fast"
)
configs=()
for version in "${versions[@]}"; do
    configs+=(--config "cpu/loop_forward: $version")
done
exec "${ATTNTUNE:-attntune}" bench --device cpu "${configs[@]}" "$@"
