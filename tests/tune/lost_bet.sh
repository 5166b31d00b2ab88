# lost_bet.sh: where the first variants take longer than is bet on a first winner (10 s), the next
# problem may take more, and the last line asks for as much.
. "$(dirname "$0")/common.sh"

toys one 4
slow=$(wrapped_cc "grep -q 'ROWS = ' \"\$word\" && sleep 12")
CC=$slow "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d8 fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s16:d24 fwd:f32:b1:h1:s16:d32 \
    --device cpu --threads 1 --jobs 1 --path one --family toy_forward --budget 26s --format csv >out 2>err
[ "$(grep -c ',cpu/toy_forward,' out)" = 1 ] || fail "not one of four has a winner: $(cat out err)"
each=$(sed -n 's/.*--budget [0-9]*s gives each problem \([0-9]*\) s$/\1/p' err)
[ "${each:-0}" -ge 20 ] || fail "'$each' seconds would be too short: $(cat err)"
exit $bad
