# planted.sh: faults on the GPU. Each of the planted variants costs one trial with the right outcome,
# all 60 others are measured, and a lost worker is replaced at once.
. "$(dirname "$0")/common.sh"
problem=fwd:f32:b1:h2:s200:d32:lse
path=$ATTN_SOURCE/tests/gpu/planted

begin=$(date +%s.%N)
"$ATTNTUNE" tune "$problem" --device cuda:0 --family cuda/planted --path "$path" \
    --search exhaustive --budget 120s --format csv >out 2>err || fail "exit code $?: $(cat err)"
awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s\n", b - a }'
list >rows
for pair in compile=compile_error wild=crash misaligned=crash trap=crash endless=timeout \
    shared=launch_error memory=oom last_row=wrong lse=wrong; do
    what=${pair%=*} outcome=${pair#*=}
    trials=$(grep -c "WHAT=$what\"" rows)
    right=$(grep "WHAT=$what\"" rows | grep -c "\"outcome\": \"$outcome\"")
    [ "$trials" = 1 ] && [ "$right" = 1 ] ||
        fail "$what: $trials trials, $right of them $outcome: $(grep "WHAT=$what\"" rows)"
    grep -A1 "WHAT=$what" err | grep -q "again: attntune verify $problem" ||
        fail "$what: nothing says how to see it again"
done
ok=$(grep 'WHAT=ok"' rows | grep -c '"outcome": "ok"')
[ "$ok" = 60 ] || fail "$ok of 60 right variants were measured"
[ "$(wc -l <rows)" = 69 ] || fail "$(wc -l <rows) trials, not 69"
grep -q 'WHAT=ok' out || fail "the winner is not a right one: $(cat out)"

# After a lost worker the next trial ends within 2 s; times are whole seconds.
lost=
while read -r ended outcome; do
    at=$(date -d "$ended" +%s)
    [ -z "$lost" ] || [ $((at - lost)) -le 3 ] || fail "$((at - lost)) s after a lost worker"
    lost=
    case $outcome in crash | timeout) lost=$at ;; esac
done <<END
$(sed 's/.*"ended": "\([^"]*\)".*"outcome": "\([^"]*\)".*/\1 \2/' rows | sort -s -k 1,1)
END
[ $bad = 0 ] || cat err
exit $bad
