# stored.sh: a winner runs from its stored binary in a fresh process with NVRTC hidden, at once; and
# `attntune devices` says what is missing, without NVRTC and without the driver.
. "$(dirname "$0")/common.sh"
problem=fwd:f16:b1:h8:s512:d128:causal

"$ATTNTUNE" tune "$problem" --device cuda:0 --budget 10s >out 2>err || fail "tune: $(cat err)"
export LD_LIBRARY_PATH
plain=${LD_LIBRARY_PATH:-}
LD_LIBRARY_PATH=$(hide $nvrtc $jitlink)
"$ATTN_BUILD/tests/gpu_stored" "$ATTNTUNE_DB" "$problem" 20 || fail "gpu_stored without NVRTC"

# Without NVRTC there is a device and a word on what is missing; another class has no kernel.
"$ATTNTUNE" devices >out 2>&1 || fail "devices without NVRTC: exit code $?"
grep -q '^cuda:0 .*device' out || fail "no cuda:0 without NVRTC: $(cat out)"
grep '^cuda ' out
grep -q 'nvrtc.*not found\|libnvrtc' out || fail "nothing says that NVRTC is missing: $(cat out)"
"$ATTNTUNE" tune fwd:f16:b1:h8:s512:d64 --device cuda:0 --budget 5s >out 2>err && fail "tuned"
grep -q libnvrtc err || fail "tune does not say that NVRTC is missing: $(cat err)"

LD_LIBRARY_PATH=$plain
LD_LIBRARY_PATH=$(hide libcuda.so.1 libcuda.so)
"$ATTNTUNE" devices >out 2>&1 || fail "devices without a driver: exit code $?"
grep '^cuda ' out
grep -q '^cpu ' out || fail "no CPU without a driver: $(cat out)"
grep -q 'NVIDIA driver is not installed (libcuda.so.1' out || fail "nothing says that the driver is missing: $(cat out)"
"$ATTNTUNE" devices --device cuda:0 >out 2>err
[ $? = 3 ] || fail "exit code of devices --device cuda:0 without a driver is not 3"
exit $bad
