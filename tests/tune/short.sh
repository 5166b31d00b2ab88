# short.sh: where no share of the budget is long enough for a first variant, the first problems have
# the time of the last: some winners instead of none. The last line says how to have the others, and
# the same command goes on with them.
. "$(dirname "$0")/common.sh"

# One variant, whose compiler takes three times as long as a share.
toys one 4
slow=$(wrapped_cc "grep -q 'ROWS = ' \"\$word\" && sleep \$(cat $work/slow)")
export CC=$slow
problems=$(printf ' fwd:f32:b1:h1:s16:d%d' 4 8 12 16 20 24 28 32 36 40)
run() {
    # shellcheck disable=SC2086
    "$ATTNTUNE" tune $problems --device cpu --threads 1 --path one --family toy_forward --budget $((10 * scale))s \
        --format csv >out 2>err
}
winners() { grep -c ',cpu/toy_forward,' out; }

short() {
    echo $((3 * scale)) >slow
    run && fail "all have a winner: $(cat out)"
    first=$(winners)
    [ "$first" -ge 1 ] || fail "there is no winner at all: $(cat out err)"
    grep -q "^attntune: $((10 - first)) of 10 without a winner, $((10 - first)) for want of time: --budget \([0-9]*\)0s gives each problem \1 s" err ||
        fail "the last line is: $(tail -1 err)"
    run && fail "all have a winner: $(cat out)"
    [ "$(winners)" -gt "$first" ] || fail "the same command has not gone on after $first: $(cat out err)"
}
in_time short
