# held.sh: on a device at its power limit the winner is the kernel that is fastest when it runs
# alone, not the one that interleaved rounds favour; in a budget too short for that, the latter.
. "$(dirname "$0")/common.sh"

plant my 1 ok hungry
sed -i 's/^\/\/ FAKE.*/\/\/ FAKE cost_ns=$(WHAT == "hungry" and 100000 or 110000) noise=0.001 hungry=$(WHAT == "hungry" and "0.3" or "0")/' \
    my/templates/fake/planted.c
path=my

winner() { tune --again --format csv "$@" 2>err | grep -o 'WHAT=[a-z]*'; }
held() {
    [ "$(winner --budget 20s)" = WHAT=ok ] || fail "20 s: $(winner --budget 20s), not the thrifty one: $(cat err)"
    [ "$(winner --budget $((2 * scale))s)" = WHAT=hungry ] || fail "2 s x $scale: there is no time to hold, and yet $(cat err)"
}
in_time held
