# whole.sh: a winner that --whole has found outside of the core stays one in runs over the core, which
# measure it beside theirs; and --whole searches on after a run over the core has had its share.
. "$(dirname "$0")/common.sh"

# Outside of the core is one variant, and it is the fastest.
plant my 64 ok
sed -i 's/  launch = /  core = { GRAIN = { 1, 2, 3 } },\n&/' my/spaces/fake/planted.lua
sed -i 's/cost_ns=$(1000 + 10 \* GRAIN)/cost_ns=$(GRAIN == 64 and 70000 or 100000 + GRAIN)/' my/templates/fake/planted.c
path=my

winner() { tune --format csv "$@" 2>err | grep -o 'GRAIN=[0-9]*'; }
[ "$(winner --budget 20s)" = GRAIN=1 ] || fail "the core: $(cat err)"
[ "$(winner --budget 20s --whole --search exhaustive)" = GRAIN=64 ] || fail "--whole does not search: $(cat err)"
[ "$(winner --budget 20s --again)" = GRAIN=64 ] || fail "a run over the core takes its place: $(cat err)"
[ "$(winner --budget 20s --fresh)" = GRAIN=64 ] || fail "a fresh run over the core takes its place: $(cat err)"
exit $bad
