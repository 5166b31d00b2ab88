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

# A problem that the run did not come to keeps the winner that it has.
other=${problem/:s*:/:s96:}
toy="--device fake --path $TESTS/toy --db INT.db"
attntune-fake tune $other $toy --budget 2s >out 2>log || echo "no winner: $(tail -n 1 log)"
attntune-fake tune $problem $other $toy --search exhaustive --budget 600s --format csv >out 2>log &
pid=$!
sleep 1
kill -INT $pid
wait $pid
echo "two problems: exit $?"
grep "$other" out | cut -d, -f2-4 | sed 's/,[0-9.e+-]*$/,GFLOP/; s/,[0-9.e+-]*,/,ms,/'
! grep 'without a winner' log
