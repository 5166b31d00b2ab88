# kill.sh: kill -9 at random moments loses nothing that was committed, and the same command goes on:
# no finished trial is repeated, no worker is left behind.
. "$(dirname "$0")/common.sh"
RANDOM=20 # the same moments each time, as far as the machine allows

# Long enough to be killed, and with variants that keep workers busy.
plant "$work/planted" 30 ok wrong crash
path=$work/planted
finished() { list 2>/dev/null | grep -v '"outcome": "\(running\|lost\)"' | sed 's/.*"id": "\([^"]*\)".*/\1/' | sort; }
: >before
for round in $(seq 20); do
    "$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$path" --family planted --search exhaustive --budget 60s >/dev/null 2>err &
    pid=$!
    sleep 0.$((RANDOM % 9))$((RANDOM % 10))
    workers=$(pgrep -P $pid)
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    finished >after
    [ -z "$(comm -23 before after)" ] || fail "round $round: finished trials are gone"
    mv after before
    for worker in $workers; do
        for moment in $(seq 50); do
            runs "$worker" || break
            sleep 0.02
        done
        runs "$worker" && fail "round $round: worker $worker has outlived its parent"
    done
done
killed=$(wc -l <before)
tune --family planted --search exhaustive --budget 60s >out 2>err || fail "the last run: exit code $?: $(cat err)"
finished >after
[ -z "$(comm -23 before after)" ] || fail "the last run has dropped finished trials"
list | grep -v '"outcome": "lost"' | sed 's/.*"config": "\([^"]*\)".*/\1/' | sort | uniq -c | awk '$1 > 1' >twice
[ ! -s twice ] || fail "tried twice: $(cat twice)"
# What a worker had twice when a kill came is given up; all others have an end.
list | grep '"error": "its session ended before it"' | sed 's/.*"config": "\([^"]*\)".*/\1/' | sort | uniq -d >given_up
list | grep -v '"outcome": "lost"' | sed 's/.*"config": "\([^"]*\)".*/\1/' | sort -u >ended
[ "$(sort -u given_up ended | wc -l)" = 90 ] || fail "some of 90 trials have no end: $(outcomes)"
[ "$(comm -23 given_up ended | wc -l)" -le 20 ] || fail "too many were given up: $(outcomes)"
"$ATTNTUNE_FAKE" db check >check 2>&1 || fail "db check: $(cat check)"
started=$(date +%s)
tune --family planted --search exhaustive --budget 60s >again 2>err || fail "again: exit code $?"
[ $(($(date +%s) - started)) -le 5 ] || fail "with everything done it took $(($(date +%s) - started)) s"
grep -q resumed again || fail "it does not say that it has resumed: $(cat again)"
echo "$killed trials had an end when the last kill came; then $(outcomes)"
exit $bad
