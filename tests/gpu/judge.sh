# judge.sh: problems so large that the float64 reference holds only some of their rows. A variant
# that is wrong in one row of one head passes that, and is caught by cuda/reference_forward; right
# variants pass both; and a wrong reference_forward ends the problem.
. "$(dirname "$0")/common.sh"
problem=fwd:f16:b1:h32:s16384:d128:causal
templates=$ATTN_SOURCE/templates/cuda

# overlay DIR FILE FROM TO: a copy of a template in which the text FROM, which is there once, is TO.
overlay() {
    mkdir -p "$1/templates/cuda"
    [ "$(grep -cF "$3" "$templates/$2")" = 1 ] || fail "$2 has not one '$3'"
    awk -v from="$3" -v to="$4" '{ at = index($0, from) }
        at { $0 = substr($0, 1, at - 1) to substr($0, at + length(from)) } { print }' \
        "$templates/$2" >"$1/templates/cuda/$2"
}
# no_judge DIR: a reference_forward that accepts nothing.
no_judge() {
    mkdir -p "$1/spaces/cuda"
    sed 's/accepts = function(p, dev)/& if p.head_dim > 0 then return false, "it is hidden" end/' \
        "$ATTN_SOURCE/generator/spaces/cuda/reference_forward.lua" >"$1/spaces/cuda/reference_forward.lua"
}
verify() { # verify DIR PROBLEM: the default of mma_forward, with that overlay
    local begin
    begin=$(date +%s.%N)
    "$ATTNTUNE" verify "$2" --device cuda:0 --path "$1" --family mma_forward \
        --config BLOCK_M=64 >out 2>err
    local code=$?
    awk -v a="$begin" -v b="$(date +%s.%N)" -v what="$1 $2" -v code=$code \
        'BEGIN { printf "%s: %.1f s, exit code %d\n", what, b - a, code }'
    grep -h 'compared\|judges\|error against' err
    return $code
}

bad_row='(a.seq_q > 4000 && first_row + row == 5003 && o == (attn_half *)a.o + 17 * a.o_stride[1] ? 1.05f : 1.0f)'
mkdir -p right/templates # an overlay that changes nothing
overlay bad mma_forward.cu '0.0f : 1.0f / sum;' "0.0f : $bad_row / sum;"
overlay hidden mma_forward.cu '0.0f : 1.0f / sum;' "0.0f : $bad_row / sum;"
no_judge hidden
overlay wrong reference_forward.cu 'narrow(first < end ? out[c] / sum' 'narrow(first < end ? out[c] / sum * 1.01f'

for p in $problem fwd:bf16:b2:h32:s8192:d64 fwd:bf16:b1:hq32:hkv8:s8192:d64:window2000,0:lse; do
    verify right "$p" || fail "a right variant of $p: $(cat out err)"
    grep -q 'every element is also compared with cuda/reference_forward (' err || fail "$p: no judge"
done
no_judge right
verify right $problem || fail "a right variant without a judge: $(cat out err)"
grep -q 'only a sample of rows is compared, since cuda/reference_forward cannot judge' err ||
    fail "a judge that is missing is not told: $(cat err)"
verify hidden $problem || fail "float64 holds the wrong row, so nothing is shown: $(cat err)"
verify bad $problem && fail 'a wrong row is not seen'
grep -q 'batch 0 head 17 row 5003: error against the reference kernel' err ||
    fail "the wrong row is not named: $(cat err)"
verify wrong $problem && fail 'a wrong judge is not seen'
grep -q 'cuda/reference_forward judges all kernels, but it disagrees with the float64' err ||
    fail "a wrong judge is not told: $(cat err)"
exit $bad
