# broken_cc.sh: a compiler that is broken costs no trial: the run ends with one line of its own, and
# the next run, with a good one, tries all. What did fail is tried again by --again.
. "$(dirname "$0")/common.sh"

problem=fwd:f32:b1:h1:s16:d16
run() { # run CC ARGUMENT...
    local cc=$1
    shift
    CC=$cc "$ATTNTUNE" tune $problem --device cpu --threads 1 --path "$toy" --family toy_forward \
        --search exhaustive --budget 60s --format csv "$@" >out 2>err
}
trials() { "$ATTNTUNE" db list --all --format jsonl --path "$toy" 2>/dev/null | wc -l; }
good=${CC:-cc}

# As a machine with a compiler and no headers of the C library, one that does not know an option, and
# one that breaks while the run goes on.
cat >no_headers <<SH
#!/bin/sh
for word; do
    [ "\$word" = -c ] && { echo 'In file included from x.c:1:' >&2
        echo 'x.c:1:10: fatal error: stdint.h: No such file or directory' >&2; exit 1; }
done
exec $good "\$@"
SH
chmod +x no_headers
begun=$(date +%s)
for cc in "$good -bad" ./no_headers; do
    run "$cc" && fail "$cc: it has a winner: $(cat out)"
    grep -q ',.the C compiler `'"$cc"'` is broken .*error: ' out || fail "$cc: the reason is $(cat out)"
    grep -q ',complete,' out && fail "$cc: it claims to be complete: $(cat out)"
    [ "$(grep -c 'error: ' err)" = 1 ] || fail "$cc: not one line: $(cat err)"
    [ "$(trials)" = 0 ] || fail "$cc: $(trials) trials are recorded"
done
[ $(($(date +%s) - begun)) -le 100 ] || fail "it took $(($(date +%s) - begun)) s to see that"

run "$good" || fail "with a good compiler: exit code $?: $(cat out err)"
grep -q ',complete,' out || fail "with a good compiler: $(cat out)"
all=$(trials)
[ "$all" -ge 4 ] || fail "only $all trials"

# A compiler that fails on these sources alone: their fault, told once with its own line and counted.
cat >picky <<SH
#!/bin/sh
for word; do
    case \$word in
    *.c) grep -q attn_forward_args "\$word" && [ ! -e fixed ] &&
        { echo 'toy_forward.c:7: error: not today' >&2; exit 1; } ;;
    esac
done
exec $good "\$@"
SH
chmod +x picky
run "$work/picky -DPICKY" && fail "it has a winner: $(cat out)"
grep -q 'none of .* compile_error' out || fail "the reason is: $(cat out)"
[ "$(grep -c 'error: not today' err)" = 2 ] && grep -q "^[0-9]* more: compile_error: .*exit code 1: toy_forward.c:7: error: not today" err ||
    fail "not told once and counted: $(cat err)"
touch fixed
run "$work/picky -DPICKY" && fail "what failed was tried again: $(cat out)"
run "$work/picky -DPICKY" --again || fail "--again has no winner: $(cat out err)"
[ "$(trials)" = $((3 * all)) ] || fail "$(trials) trials, $all of them the first run's"

# One that never ends: the run keeps to its budget, is interrupted, or is killed, and nothing stays in
# the temporary folder: in the last case, once attntune has been started again.
mkdir tmp
export ATTNTUNE_DB=$work/cache/endless.db
cat >endless <<SH
#!/bin/sh
for word; do
    case \$word in
    *.c) grep -q attn_forward_args "\$word" && { touch $work/hangs; sleep 100; } ;;
    esac
done
exec $good "\$@"
SH
chmod +x endless
for end in BUDGET INT KILL; do
    rm -f hangs
    ( trap - INT; TMPDIR=$work/tmp CC=$work/endless exec "$ATTNTUNE" tune $problem --device cpu --threads 1 \
        --path "$toy" --family toy_forward --budget 6s ) >out 2>err &
    pid=$!
    for moment in $(seq 200); do
        [ -e hangs ] && break
        sleep 0.05
    done
    [ -e hangs ] || fail "$end: no compile has begun: $(cat out err)"
    [ "$(ls -d tmp/attntune-cc-*)" ] || fail "$end: there is no folder to be left"
    [ $end = BUDGET ] || kill -$end $pid
    wait $pid 2>/dev/null
    [ $end = KILL ] && sleep 0.5 && TMPDIR=$work/tmp "$ATTNTUNE" devices >/dev/null
    ls -d tmp/attntune-cc-* 2>/dev/null && fail "$end: that was left behind"
done
exit $bad
