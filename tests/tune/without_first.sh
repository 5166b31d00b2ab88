# without_first.sh: where a run has no time for all problems, those without a winner come first: the
# same command, again and again, gives each of them one, and not the first ones more and more.
. "$(dirname "$0")/common.sh"

# Variants whose compiler takes more than half of the budget: no run has time for two problems.
toys few "1, 4, 16"
slow=$(wrapped_cc "grep -q 'ROWS = ' \"\$word\" && sleep \$(cat $work/slow)")
run() {
    CC=$slow "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d8 fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s16:d24 --device cpu \
        --threads 1 --jobs 1 --path few --family toy_forward --budget $((3500 * scale))ms --format csv >out 2>err
}
without_first() {
    echo $((2 * scale)) >slow
    for count in 1 2 3; do
        run
        [ "$(grep -c ',cpu/toy_forward,' out)" = $count ] || fail "run $count: $(cat out err)"
    done
}
in_time without_first
