# SIGINT and SIGTERM end a run with 130 and 143, what was found by then is printed, and what was
# committed is there.
. "$TESTS/cli/family.sh"
for signal in INT TERM; do
    attntune-fake tune $problem --device fake --path "$TESTS/toy" --search exhaustive --budget 600s \
        --db $signal.db >out 2>log &
    pid=$!
    for _ in $(seq 600); do
        [ "$(attntune-fake db list --db $signal.db --path "$TESTS/toy" 2>/dev/null | wc -l)" -gt 2 ] && break
        sleep 0.1
    done
    kill -$signal $pid
    wait $pid
    echo "$signal: exit $?"
    grep -c "^fake .*$problem" out
    attntune-fake db list --db $signal.db --all --path "$TESTS/toy" | grep -c running
    attntune-fake db check --db $signal.db 2>&1 | grep -o '0 faults'
done
