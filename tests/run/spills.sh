#!/usr/bin/env bash
# Accumulators stay in registers: the loops of products of a default multiply at least eight vectors
# a turn, and store none to the stack, on AVX-512 and on AVX2. Where they do not, kernels are 2 to
# 10 times slower, and right.
. "$ATTN_SOURCE/tests/tune/common.sh"
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the compiler is not for x86-64"; exit 77; }

cat >loops.awk <<'END'
# The innermost loops of the assembly: "FUNCTION products stores-to-the-stack".
/^[A-Za-z_][A-Za-z0-9_.]*:/ { report(); name = $1; lines = loops = 0; split("", label) }
{ text[++lines] = $0 }
/^\.L[A-Za-z0-9_]*:/ { sub(/:.*/, "", $1); label[$1] = lines }
/^[ \t]+j[a-z]+[ \t]+\.L/ && $2 in label { first[++loops] = label[$2]; last[loops] = lines }
function report(   i, j, inner, products, stores) {
    for (i = 1; i <= loops; i++) {
        inner = 1
        for (j = 1; j <= loops; j++)
            inner = inner && (i == j || first[j] < first[i] || last[j] > last[i])
        products = stores = 0
        for (j = first[i]; j <= last[i]; j++) {
            products += text[j] ~ /vfn?madd/
            stores += text[j] ~ /mov.*%[xyz]mm[0-9]+, *[-0-9]*\(%r[sb]p/
        }
        if (inner && products >= 8)
            print name, products, stores
    }
}
END { report() }
END

check() { # check FUNCTIONS FAMILY PROBLEM ARCH: names of functions, as a pattern
    local functions=$1 options kind
    shift
    "$ATTNTUNE" show "$1" "$2" --arch "$3" -o kernel.c >err 2>&1 || { fail "$*: $(cat err)"; return; }
    read -r _ _ options <kernel.c # the command is on the first line; the file is its last word
    ${CC:-cc} ${options% -c *} -S -o kernel.s kernel.c || { fail "$*: does not compile"; return; }
    awk -f loops.awk kernel.s | grep -E "^($functions)[.:]" >loops
    for kind in scores outputs; do
        grep -q "^$kind" loops || fail "$*: no loop of products in $kind: $(cat loops)"
    done
    awk '$3 > 0 { print; bad = 1 } END { exit bad }' loops >spilled ||
        fail "$*: stores to the stack in loops of products (function, products, stores): $(cat spilled)"
}

for arch in cpu:avx512 cpu:avx2; do
    check 'scores_[0-9]|outputs_[0-9]' cpu/simd_forward fwd:f32:b1:h4:s1024:d64 $arch
    check 'scores_[0-9]|outputs_[0-9]' cpu/simd_forward fwd:f32:b1:h4:s1024:d128:causal $arch
    # Four heads share K and V: four rows at once.
    check 'scores_4|outputs_4_1' cpu/decode_forward fwd:f32:b1:hq32:hkv8:sq1:sk4096:d128 $arch
done
exit $bad
