# held.sh: on a device at its power limit the winner is the kernel that is fastest when it runs
# alone, not the one that interleaved rounds favour; in a budget too short for that, the latter, but
# it does not take the place of one that was found with more time.
. "$(dirname "$0")/common.sh"

plant my 1 ok hungry
sed -i 's/^\/\/ FAKE.*/\/\/ FAKE cost_ns=$(WHAT == "hungry" and 100000 or 107000) noise=0.001 hungry=$(WHAT == "hungry" and "0.3" or "0")/' \
    my/templates/fake/planted.c
path=my

winner() { tune --again --format csv "$@" 2>err | grep -o 'WHAT=[a-z]*'; }
held() {
    short=$((2 * scale))s
    [ "$(winner --budget $short)" = WHAT=hungry ] || fail "$short: there is no time to hold, and yet $(cat err)"
    [ "$(winner --budget 20s)" = WHAT=ok ] || fail "20 s: not the thrifty one: $(cat err)"
    [ "$(winner --budget $short)" = WHAT=ok ] || fail "$short after 20 s: $(cat err)"
    grep -q 'stays the winner, .* no time to measure the best of this run alone' err || fail "it does not say why: $(cat err)"
}
in_time held
