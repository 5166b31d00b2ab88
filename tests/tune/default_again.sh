# default_again.sh: a default that a run was killed over is the first to be tried by the next one:
# without it, no winner is more than provisional. Killed over it twice, it is given up.
. "$(dirname "$0")/common.sh"

# Three variants, one compiled at a time; the default takes long while there is a file `slow`.
toys few "1, 4, 16"
record="grep -o \"ROWS = [0-9]*\" \"\$word\" | head -n 1 >>$work/order"
slow=$(wrapped_cc "$record; grep -q 'ROWS = 4,' \"\$word\" && [ -e $work/slow ] && exec sleep 60")
few() {
    CC=$slow exec "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 --device cpu --threads 1 --jobs 1 --path few \
        --family toy_forward --budget 60s --format csv
}
kill_over_default() {
    touch slow
    few >/dev/null 2>&1 &
    for moment in $(seq 200); do
        grep -q 'ROWS = 4' order && break
        sleep 0.05
    done
    kill -9 $!
    wait $! 2>/dev/null
    rm slow
}

: >order
kill_over_default
: >order
(few) >out 2>err || fail "exit code $?: $(cat out err)"
[ "$(head -n 1 order)" = "ROWS = 4" ] || fail "compiled in this order: $(xargs <order)"
grep -q 'default of its family has not been measured' err && fail "the default has been measured, and yet $(cat err)"

rm "$ATTNTUNE_DB"*
: >order
kill_over_default
: >order
kill_over_default
: >order
(few) >out 2>err
grep -q 'ROWS = 4' order && fail "the default was not given up: $(xargs <order)"
exit $bad
