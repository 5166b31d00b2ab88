# lock_over.sh: another tuner that held the timing lock for a while is the reason for the problem that
# waited for it, and not for later ones.
. "$(dirname "$0")/common.sh"

plant "$work/planted" 1 ok compile_hang
sed -i 's/^  params = /  require = { { "one for each problem", { "WHAT" },\
    function(c, p) return (c.WHAT == "ok") == (p.head_dim == 16) end } },&/
    s/defaults = .*/defaults = function(p) return { WHAT = p.head_dim == 16 and "ok" or "compile_hang", GRAIN = 1 } end, }/' \
    "$work/planted/spaces/fake/planted.lua"
lock_over() {
    flock -x /tmp/attntune-fake.lock sleep $((2 * scale)) &
    sleep 0.3
    "$ATTNTUNE_FAKE" tune fwd:f32:b1:h2:s24:d16 fwd:f32:b1:h2:s24:d32 --device fake --path planted --family planted \
        --budget $((4 * scale))s --format csv >out 2>err
    grep -q '^fake,fwd:f32:b1:h2:s24:d16,.*,fake/planted,' out || fail "no winner when the lock is free: $(cat out err)"
    grep '^fake,fwd:f32:b1:h2:s24:d32,' out | grep -q 'before any variant was measured' || fail "the reason is: $(cat out err)"
    wait
}
in_time lock_over
