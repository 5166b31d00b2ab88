# planted.sh: every way in which a variant can fail costs one trial with the right outcome, and all
# others are measured; the failing ones say how to see them again.
. "$(dirname "$0")/common.sh"

want="ok=ok compile_error=compile_error compile_crash=crash compile_hang=timeout load_error=load_error
    launch_error=launch_error device_lost=crash crash=crash illegal=crash hang=timeout oom=oom
    wrong=wrong wrong_last_row=wrong wrong_lse=wrong wild=wrong flaky=wrong"
plant "$work/planted" 2 $(for pair in $want; do echo "${pair%=*}"; done)
path=$work/planted
tune --search exhaustive --budget 120s --family planted --format csv >out 2>err || fail "exit code $?: $(cat err)"
list >rows
for pair in $want; do
    what=${pair%=*} outcome=${pair#*=}
    trials=$(grep -c "\"config\": \"WHAT=$what " rows)
    right=$(grep "\"config\": \"WHAT=$what " rows | grep -c "\"outcome\": \"$outcome\"")
    [ "$trials" = 2 ] && [ "$right" = 2 ] ||
        fail "$what: $trials trials, $right of them $outcome: $(grep "WHAT=$what " rows)"
    [ "$outcome" = ok ] || grep -A1 "WHAT=$what " err | grep -q "again: attntune verify $problem" ||
        fail "$what: nothing says how to see it again"
done
grep -q 'WHAT=ok GRAIN=1' out || fail "the winner is not the right one: $(cat out)"

# The command that reproduces, with the program of this test, finds the same.
command=$(grep -A1 'WHAT=wrong_last_row ' err | sed -n 's/.*again: attntune //p' | head -1)
[ -n "$command" ] || command=none
eval "$ATTNTUNE_FAKE $command" >again 2>&1
[ $? = 1 ] && grep -q wrong again || fail "'$command' does not reproduce: $(cat again)"
[ $bad = 0 ] || cat err
exit $bad
