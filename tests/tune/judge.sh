# judge.sh: a variant that is wrong in one row which the float64 reference does not hold is caught by
# the backend's reference family; a wrong reference family ends the problem; one that cannot be built
# is told, once.
. "$(dirname "$0")/common.sh"

# Its reference is complete for the first kind of inputs, and for the others lacks most heads: with
# this seed, the one that wrong_later spoils.
problem=fwd:f16:b1:h64:sq1:sk110000:d1:a1

# judge DIR OUTCOME: a reference family on the fake device.
judge() {
    mkdir -p "$1/spaces/fake" "$1/templates/fake"
    { echo 'return family { name = "plain", op = "forward", backend = "fake", reference = true,'
        echo '  template = "fake/plain.c", doc = "Judges the others.",'
        echo '  accepts = function() return true end,'
        echo '  params = { { "ROWS", { 16 }, "query rows" } },'
        echo '  launch = function(c) return { { grid = "tiles", rows = c.ROWS } } end,'
        echo '  defaults = function() return { ROWS = 16 } end, }'
    } >"$1/spaces/fake/plain.lua"
    { echo '/* plain.c: what the fake device is told. */'
        echo '#include "attn_abi.h"'
        echo "// FAKE outcome=$2"
        echo 'int $(KERNEL)(const attn_forward_args *a, int task, int worker);'
    } >"$1/templates/fake/plain.c"
}
verify() { # verify DIR WHAT
    "$ATTNTUNE_FAKE" verify "$problem" --device fake --path "$1" --family planted \
        --config "WHAT=$2" --seed 1 >out 2>err
}

plant "$work/alone" 1 ok wrong_later
verify "$work/alone" wrong_later || fail "the float64 reference holds the wrong row: $(cat out)"
grep -q 'compared' err && fail "a judge where there is none: $(cat err)"

plant "$work/judged" 1 ok wrong_later
judge "$work/judged" ok
verify "$work/judged" ok || fail "a right variant: $(cat err)"
grep -q 'every element is also compared with fake/plain (' err || fail "no judge: $(cat err)"
verify "$work/judged" wrong_later && fail 'a wrong row is not seen'
grep -q "std 8, $problem: batch 0 head 32 row 0: error against the reference kernel" err ||
    fail "the wrong row is not named: $(cat err)"

plant "$work/wrong" 1 ok
judge "$work/wrong" wrong
verify "$work/wrong" ok && fail 'a wrong judge is not seen'
grep -q 'fake/plain judges all kernels, but it disagrees with the float64 reference: ' err ||
    fail "a wrong judge is not told: $(cat err)"

# A wrong variant takes the worker along, and the next one is told of the problem again.
plant "$work/missing" 1 ok wrong
judge "$work/missing" compile_error
"$ATTNTUNE_FAKE" verify "$problem" --device fake --path "$work/missing" --family planted >out 2>err
grep -q '1 variant right, 1 not' err || fail "without a judge: $(cat err)"
[ "$(grep -c 'only a sample of rows is compared, since fake/plain cannot judge the rest: ' err)" = 1 ] ||
    fail "a judge that does not compile is not told once: $(cat err)"
exit $bad
