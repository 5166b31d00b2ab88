# cut.sh: a search whose last variants were dropped for want of time is not called complete, and the
# same command goes on with them; it is complete when each has an end.
. "$(dirname "$0")/common.sh"

path=$work/planted
run() { tune --family planted --search exhaustive --format csv "$@" >out 2>err; }
field() { sed -n 2p out | cut -d, -f"$(head -1 out | tr , '\n' | grep -n "^$1\$" | cut -d: -f1)"; }

cut_short() {
    rm -rf "$path"
    plant "$path" $((2 * scale)) ok hang
    run --budget $((4 * scale))s || fail "exit code $?: $(cat out err)"
    [ "$(field tried)" -lt $((4 * scale)) ] || fail "nothing was cut short: $(cat out)"
    [ "$(field search)" = stopped ] || fail "it claims to be $(field search): $(cat out)"
    run --budget 60s || fail "exit code $?: $(cat out err)"
    [ "$(field tried),$(field search)" = $((4 * scale)),complete ] || fail "the second run: $(cat out)"
    run --budget 60s || fail "exit code $?: $(cat out err)"
    [ "$(field search)" = resumed ] || fail "the third run: $(cat out)"
}
in_time cut_short
