# unfinished.sh: a problem that a run could not give a winner within its share gets, from the same
# command, all that the finished ones leave, and not its share again and again.
. "$(dirname "$0")/common.sh"

toys one 4
slow=$(wrapped_cc "grep -q 'D = 24' \"\$word\" && sleep \$(cat $work/slow)")
export CC=$slow
run() { # run SECONDS: how long the compiler takes for d24; the share is 3 s
    echo "$1" >slow
    "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s16:d24 fwd:f32:b1:h1:s16:d8 fwd:f32:b1:h1:s16:d4 \
        --device cpu --threads 1 --path one --family toy_forward --budget $((12 * scale))s --format csv >out 2>err
}
unfinished() {
    run 600
    [ "$(grep -c ',cpu/toy_forward,' out)" = 3 ] || fail "three have a winner at first: $(cat out err)"
    run $((4 * scale)) || fail "exit code $?: $(cat out err)"
    [ "$(grep -c ',cpu/toy_forward,' out)" = 4 ] || fail "the fourth has none: $(cat out err)"
}
in_time unfinished
