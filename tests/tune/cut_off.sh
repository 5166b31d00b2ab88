# cut_off.sh: variants that a worker had when a run was killed are no failures: the next run says that
# they were cut off, and tries them again. What two runs were killed over is given up.
. "$(dirname "$0")/common.sh"

# Three variants, whose compiler takes long while there is a file `slow`.
toys few "1, 4, 16"
slow=$(wrapped_cc "[ -e $work/slow ] && grep -q 'ROWS = ' \"\$word\" && touch \"$work/slow/\$\$\" && exec sleep 10")
export CC=$slow
few() {
    exec "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 --device cpu --threads 1 --jobs 3 --path few --family toy_forward --format csv "$@"
}
kill_with_all_compiling() {
    mkdir slow
    few --budget 60s >/dev/null 2>&1 &
    for moment in $(seq 200); do
        [ "$(ls slow | wc -l)" = 3 ] && break
        sleep 0.05
    done
    kill -9 $!
    wait $! 2>/dev/null
    rm -r slow
}

kill_with_all_compiling
mkdir slow
(few --budget 1s) >out 2>err && fail "it has a winner: $(cat out)"
rm -r slow
grep -q 'ended before any variant was measured; 3 that the end of another run cut off will be tried again' out ||
    fail "of what was cut off it says: $(cat out err)"
(few --budget 60s) >out 2>err || fail "exit code $?: $(cat out err)"
grep -q ',3,3,.*,complete,' out || fail "not all were tried again: $(cat out err)"

rm "$ATTNTUNE_DB"*
kill_with_all_compiling
kill_with_all_compiling
(few --budget 60s) >out 2>err && fail "given up, but it has a winner: $(cat out)"
grep -q 'none of the 3 variants tried passed: 3 lost,' out || fail "of what was given up it says: $(cat out err)"
exit $bad
