# again.sh: problems that have been searched within a budget are done for a run with that budget, and
# take their shares away with them: one more problem has its own and not all that is left. A larger
# budget goes on.
. "$(dirname "$0")/common.sh"

# On the fake device more variants than any run here comes to; on the CPU a single one.
plant planted 64 ok
sed -i -e "s/params = {/& { \"MORE\", {$(seq -s, 1 64)}, \"nothing\" },/" -e 's/GRAIN = 1/MORE = 1, &/' \
    planted/spaces/fake/planted.lua
toys planted "4"
for space in "$ATTN_SOURCE"/generator/spaces/cpu/*.lua; do
    sed 's/accepts = function(.*)/& if true then return false, "not here" end/' "$space" >"planted/spaces/cpu/${space##*/}"
done

# And a family whose compiler is not here, which must not keep a problem from being done.
cp planted/templates/cpu/toy_forward.c planted/templates/cpu/absent.c
sed 's/toy_forward/absent/g; s/flags =/compiler = "absent-cc", &/' planted/spaces/cpu/toy_forward.lua \
    >planted/spaces/cpu/absent.lua

a=fwd:f32:b1:h1:s16:d16 b=fwd:f32:b1:h1:s24:d16 c=fwd:f32:b1:h1:s32:d16 d=fwd:f32:b1:h1:s40:d16
run() { # run WORD...: sets took, milliseconds
    begun=$(date +%s%N)
    "$ATTNTUNE_FAKE" tune "$@" --path planted --format csv >out 2>err || fail "exit code $?: $(cat out err)"
    took=$((($(date +%s%N) - begun) / 1000000))
}
count() { grep -c "^$1,.*,$2," out; }

again() {
    run $a $b $c --device fake --budget $((3 * scale))s
    [ "$(count fake stopped)" = 3 ] || fail "it should have stopped three searches: $(cat out err)"

    run $a $b $c --device fake --budget $((3 * scale))s
    [ "$(count fake resumed)" = 3 ] || fail "the same command searches on: $(cat out err)"
    [ $took -le $((2000 * scale)) ] || fail "with nothing left to do it took $took ms"

    run $a $b $c $d --device fake --budget $((4 * scale))s
    [ "$(count fake resumed),$(count fake stopped)" = 3,1 ] || fail "one more problem: $(cat out err)"
    [ $took -le $((3000 * scale)) ] || fail "its share is 1 s x $scale, but it took $took ms"

    run $a $b --device fake --budget $((3 * scale))s
    [ "$(count fake stopped)" = 2 ] || fail "a larger budget does not go on: $(cat out err)"
    [ $took -ge $((2200 * scale)) ] || fail "with more to try it ended after $took ms of 3 s x $scale"

    # What one device does not need is not the next one's: that would be a larger budget.
    printf '[cpu]\n%s\n[fake]\n%s\n' $a $d >both.txt
    run @both.txt --device all --budget $((4 * scale))s
    [ "$(count cpu stopped),$(count fake stopped)" = 1,1 ] || fail "two devices: $(cat out err)"
    run @both.txt --device all --budget $((4 * scale))s
    [ "$(count cpu resumed),$(count fake resumed)" = 1,1 ] || fail "two devices again: $(cat out err)"
    [ $took -le $((3000 * scale)) ] || fail "two devices, with nothing left to do: $took ms"
}
in_time again
