#!/usr/bin/env bash
# A fresh process asks no compiler for a problem whose winner is stored with its binary, nor for one
# that is near; one for another problem of the class does, once.
. "$ATTN_SOURCE/tests/tune/common.sh"
tuned=fwd:f32:b1:h2:s64:d32 near=fwd:f32:b1:h2:s96:d32 other=fwd:f32:b1:h2:s4096:d32
"$ATTNTUNE" tune "$tuned" --device cpu --path "$toy" --family cpu/toy_forward --search exhaustive \
    --budget 120s >out 2>err || fail "tune: $(cat err)"
cat >cc <<'C'
#!/bin/sh
echo "$*" >>"$CC_LOG"
exec cc "$@"
C
chmod +x cc
export CC=$work/cc CC_LOG=$work/log ATTNTUNE_PATH=$toy
: >log
"$ATTN_BUILD/tests/first_use" "$tuned" >out 2>err || fail "$tuned: $(cat err)"
[ "$(cat out)" = "0 cpu/toy_forward" ] || fail "$tuned: $(cat out)"
grep -q -e ' -c ' log && fail "the tuned problem was compiled for: $(cat log)"
"$ATTN_BUILD/tests/first_use" "$near" >out 2>err || fail "$near: $(cat err)"
[ "$(cat out)" = "2 cpu/toy_forward" ] || fail "$near: $(cat out)"
grep -q -e ' -c ' log && fail "a near problem was compiled for: $(cat log)"
"$ATTN_BUILD/tests/first_use" "$tuned" "$other" "$tuned" >out 2>err || fail "$other: $(cat err)"
[ "$(sed -n 1p out)" = "0 cpu/toy_forward" ] && [ "$(sed -n 3p out)" = "0 cpu/toy_forward" ] ||
    fail "$other changed what $tuned gets: $(cat out)"
[ "$(sed -n 2p out | cut -c1)" -ge 5 ] || fail "$other: not a default: $(cat out)"
grep -q -e ' -c ' log || fail "a default was found without compiling it: $(cat log)"
exit $bad
