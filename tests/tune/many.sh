# many.sh: 16 runs on one fresh database at once: no error, no lost row, no variant tried twice.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 24 ok wrong
path=$work/planted
for i in $(seq 16); do
    tune --family planted --search exhaustive --budget 100s --jobs 1 --format csv >out.$i 2>err.$i &
    pids[i]=$!
done
for i in $(seq 16); do
    wait "${pids[i]}" || fail "run $i: exit code $?: $(tail -3 err.$i)"
    grep -q 'WHAT=ok GRAIN=' out.$i || fail "run $i has no winner: $(cat out.$i)"
done
[ "$(list | wc -l)" = 48 ] || fail "there are $(list | wc -l) rows, not 48: $(outcomes)"
[ "$(outcomes)" = "ok=24 wrong=24 " ] || fail "outcomes: $(outcomes)"
list | sed 's/.*"config": "\([^"]*\)".*/\1/' | sort | uniq -d >twice
[ ! -s twice ] || fail "tried twice: $(cat twice)"
"$ATTNTUNE_FAKE" db check >check 2>&1 || fail "db check: $(cat check)"
exit $bad
