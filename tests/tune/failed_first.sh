# failed_first.sh: a first variant that fails when its problem's share of a short budget is over does
# not end the search: the next one has the patience that is left.
. "$(dirname "$0")/common.sh"

toys one '4, 16' # 4 is the default
failed_first() {
    slow=$(wrapped_cc "grep -q 'ROWS = ' \"\$word\" && sleep $((12 * scale / 10)).$((12 * scale % 10))
        grep -q 'ROWS = 4,' \"\$word\" && exit 1")
    CC=$slow "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d8 fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s16:d24 fwd:f32:b1:h1:s16:d32 \
        --device cpu --threads 1 --jobs 1 --path one --family toy_forward --budget $((4 * scale))s --format csv >out 2>err
    grep -q '^cpu,fwd:f32:b1:h1:s16:d8,.*,cpu/toy_forward,' out || fail "there is no winner: $(cat out err)"
}
in_time failed_first
