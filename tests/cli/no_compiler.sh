# Without any compiler the reason is given, at once, by each verb that would build.
problem=fwd:f32:b1:h1:s16:d16
begun=$(date +%s)
for verb in tune verify bench; do
    echo "--- $verb"
    env -u CC PATH=/nonexistent "$(command -v attntune)" $verb $problem --device cpu --family toy_forward \
        --path "$TESTS/toy" 2>&1 | grep -o 'no C compiler: .* not in PATH' | sort -u
    echo "exit ${PIPESTATUS[0]}"
done
[ $(($(date +%s) - begun)) -le 20 ] || echo "it took $(($(date +%s) - begun)) s"
