# locked.sh: while another program holds the timing lock a run says that it waits, ends by its budget
# and gives that as the reason; bench says so and goes on when the lock is free.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 2 ok
path=$work/planted
hold() { flock -x /tmp/attntune-fake.lock sleep "$1" & }
waiting='waiting for another tuner'
locked() {
    env -u ATTNTUNE_DB "$ATTNTUNE_FAKE" bench "$problem" --device fake --path "$path" >out 2>err || fail "bench: exit code $?: $(cat err)"
    grep -q "$waiting" err && fail "it waits for nobody: $(cat err)"

    hold $((7 * scale))
    sleep 0.3
    begun=$(date +%s%N)
    tune --family planted --budget $((3 * scale))s --format csv >out 2>err && fail "it has a winner: $(cat out)"
    took=$((($(date +%s%N) - begun) / 1000000))
    [ $took -le $((6000 * scale)) ] || fail "a budget of 3 s x $scale took $took ms"
    [ "$(grep -c "^$waiting" err)" = 1 ] || fail "it does not say once what it waits for: $(cat err)"
    grep -q 'while another tuner held the timing lock' out || fail "the reason is: $(cat out)"
    wait

    hold $((5 * scale))
    sleep 0.3
    env -u ATTNTUNE_DB "$ATTNTUNE_FAKE" bench "$problem" --device fake --path "$path" >out 2>err || fail "bench: exit code $?: $(cat err)"
    grep -q "$waiting" err || fail "bench waits without a word: $(cat err)"
}
in_time locked
