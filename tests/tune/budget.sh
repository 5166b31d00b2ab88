# budget.sh: the budget is the wall time of the whole run, however many problems share it and
# whatever hangs in them, to 5 % or 3 s; and every problem gets its part.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 60 ok hang compile_hang
path=$work/planted
problems="fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s24:d16 fwd:f32:b1:h1:s32:d16"
begun=$(date +%s%N)
# shellcheck disable=SC2086
"$ATTNTUNE_FAKE" tune $problems --device fake --path "$path" --family planted --search random --budget 12s >out 2>err ||
    fail "exit code $?: $(cat out err)"
took=$((($(date +%s%N) - begun) / 1000000))
[ $took -le 15000 ] || fail "a budget of 12 s took $took ms"
[ $took -ge 9000 ] || fail "there was more to try, but it ended after $took ms of 12 s"
for problem in $problems; do
    grep -q "$problem .*WHAT=ok" out || fail "$problem has no winner: $(cat out)"
done
exit $bad
