# default_first.sh: whatever is measured, and however short the time, can be compared with the
# default: that is in the first race, even where its compile takes longer than those of others.
. "$(dirname "$0")/common.sh"

slow=$(wrapped_cc "grep -q 'ROWS = 4, LANES = 4' \"\$word\" && sleep 2")
measured() { "$ATTNTUNE" db list --all --format jsonl --path "$toy" 2>/dev/null | grep '"outcome": "ok"'; }
( trap - INT; CC=$slow exec "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 --device cpu --threads 1 --jobs 4 \
    --path "$toy" --family toy_forward --budget 60s --format jsonl ) >out 2>err &
for moment in $(seq 400); do
    measured >rows && break
    sleep 0.05
done
kill -INT $!
wait $!
measured >rows
grep -q '"config": "default"\|"ROWS": 4, "LANES": 4, "ORDER": "row"\|ROWS=4 LANES=4 ORDER=row' rows ||
    fail "measured before the default: $(cat rows)"
grep -q 'the default of its family has not been measured' err && fail "it says $(cat err)"
grep -q '"provisional": "yes"' out && grep -q '"times_default": [0-9]' out && fail "times of races are compared: $(cat out)"
exit $bad
