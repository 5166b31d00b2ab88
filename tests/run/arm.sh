#!/usr/bin/env bash
# Kernels for NEON are right: made by a cross compiler, run by an emulator of 64-bit Arm, held
# against float64. The kernel and launch record are what `attntune show` prints.
. "$ATTN_SOURCE/tests/tune/common.sh"
cross=aarch64-linux-gnu-gcc
for need in $cross qemu-aarch64; do
    command -v $need >where || { echo "skipped: $need is not installed"; exit 77; }
done
echo 'int main(void) { return 0; }' | $cross -static -o main -xc - 2>err ||
    { echo "skipped: $cross has no C library to link with"; exit 77; }
root=$ATTN_SOURCE

mkdir core
(cd core && $cross -std=gnu11 -O2 -c -I"$root/runtime" -I"$root/runtime/include" \
    -I"$root/templates/include" "$root"/runtime/core/*.c) || { echo "FAILED: core"; exit 1; }

run() { # run FAMILY PROBLEM [NAME=VALUE...]
    local problem=$2 steps
    "$ATTNTUNE" show "$@" --arch cpu:neon -o kernel.c >err 2>&1 || { fail "$*: $(cat err)"; return; }
    # The command is on the first line; the file is its last word.
    read -r _ _ options <kernel.c
    $cross ${options% -c *} -c -o kernel.o kernel.c || { fail "$*: does not compile"; return; }
    sed -n '/^\/\/ launch/,/^\/\/ binary/{/^\/\/ binary/d;s,^// \(launch\)\{0\,1\} *,,p}' kernel.c >launch
    steps=$(sed -n 's/^step symbol=\([^ ]*\).*/S(\1)/p' launch | tr '\n' ' ')
    $cross -std=gnu11 -O2 -static -DSTEPS="$steps" -I"$root/tests" -I"$root/runtime" \
        -I"$root/runtime/include" -I"$root/templates/include" -o kernel \
        "$root/tests/run/arm_kernel.c" kernel.o core/*.o -lm || { fail "$*: does not link"; return; }
    qemu-aarch64 ./kernel "$problem" <launch || fail "$*: wrong"
}

small=fwd:f32:b1:hq4:hkv2:sq37:sk53:d40:lse
run cpu/simd_forward $small
run cpu/simd_forward fwd:f32:b2:h2:s70:d64:causal:lse
run cpu/simd_forward fwd:f32:b1:h2:sq65:sk90:d33:dv20:causal_tl:a1
run cpu/simd_forward fwd:f32:b1:h2:s100:d128:window20,3:bshd
run cpu/simd_forward $small NV=2 MR=4 MRV=4 GROUPS=2 BLOCK_K=48
run cpu/simd_forward $small PACK_KV=1
run cpu/decode_forward fwd:f32:b1:hq8:hkv2:sq1:sk300:d64:lse
run cpu/loop_forward $small
exit $bad
