# toy.sh: a family dropped into a folder (a template and a space, no more) is tuned, proved and
# listed, on the fake device and, compiled by the machine's own compiler, on the CPU.
. "$(dirname "$0")/common.sh"

mkdir family
cp -r "$toy/spaces" "$toy/templates" family/
path=$work/family
run() { # run DEVICE FAMILY
    "$ATTNTUNE_FAKE" tune "$problem" --device "$1" --path "$path" --family "$2" --search exhaustive --budget 60s --format jsonl >out 2>err ||
        fail "$2 on $1: exit code $?: $(cat err)"
    grep -q "\"winner\": \"$1/$2\"" out || fail "$2 has no winner on $1: $(cat out err)"
    list | grep -q "\"family\": \"$1/$2\"" || fail "$2 is not listed"
    list | grep "\"family\": \"$1/$2\"" | grep -vq '"outcome": "ok"' && fail "$2 on $1: $(outcomes)"
    "$ATTNTUNE_FAKE" verify "$problem" --device "$1" --path "$path" --family "$2" >out 2>err ||
        fail "$2 on $1: verify: exit code $?: $(cat out err)"
}
run fake toy_cost
run cpu toy_forward

# The exhaustive run is a record that searches can be judged on.
"$(dirname "$ATTNTUNE_FAKE")/replay_record" "$ATTNTUNE_DB" "$problem" 15 30 >replay || fail "replay: $(cat replay)"
grep -q 'variants; within 1 %' replay || fail "the replay prints no shares: $(cat replay)"
cat replay
exit $bad
