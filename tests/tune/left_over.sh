# left_over.sh: what problems leave of their share of the budget goes to one whose own share was too
# short for its first variant.
. "$(dirname "$0")/common.sh"

# One variant; its compiler takes longer than a share, for one of four problems.
toys one "4"
left_over() {
    slow=$(wrapped_cc "grep -q 'D = 24' \"\$word\" && sleep $((4 * scale))")
    CC=$slow "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s16:d24 fwd:f32:b1:h1:s16:d8 \
        fwd:f32:b1:h1:s16:d4 --device cpu --threads 1 --path one --family toy_forward \
        --budget $((10 * scale))s --format csv >out 2>err || fail "exit code $?: $(cat out err)"
    [ "$(grep -c ',cpu/toy_forward,' out)" = 4 ] || fail "not all have a winner: $(cat out err)"
}
in_time left_over
