# cut.sh: a search whose last variants were dropped for want of time is not called complete, and the
# same command goes on with them; it is complete when each has an end.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 2 ok hang
path=$work/planted
run() { tune --family planted --search exhaustive --format csv "$@" >out 2>err; }
field() { sed -n 2p out | cut -d, -f"$(head -1 out | tr , '\n' | grep -n "^$1\$" | cut -d: -f1)"; }

run --budget 4s || fail "exit code $?: $(cat out err)"
[ "$(field tried)" -lt 4 ] || fail "nothing was cut short: $(cat out)"
[ "$(field search)" = stopped ] || fail "it claims to be $(field search): $(cat out)"
run --budget 60s || fail "exit code $?: $(cat out err)"
[ "$(field tried),$(field search)" = 4,complete ] || fail "the second run: $(cat out)"
run --budget 60s || fail "exit code $?: $(cat out err)"
[ "$(field search)" = resumed ] || fail "the third run: $(cat out)"
exit $bad
