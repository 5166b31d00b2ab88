# starved.sh: problems of which no variant compiles have their own parts of a short budget, and not
# those of the problem behind them.
. "$(dirname "$0")/common.sh"

starved() {
    bad_cc=$(wrapped_cc "grep -q ' D = 16,' \"\$word\" && exit 1")
    CC=$bad_cc "$ATTNTUNE" tune fwd:f32:b1:h1:s16:d16 fwd:f32:b1:h1:s24:d16 fwd:f32:b1:h1:s32:d16 \
        fwd:f32:b1:h1:s16:d24 --device cpu --threads 1 --jobs 1 --family simd_forward \
        --budget $((8 * scale))s --format csv >out 2>err
    grep -q '^cpu,fwd:f32:b1:h1:s16:d24,.*,cpu/simd_forward,' out || fail "d24 was starved: $(cat out err)"
}
in_time starved '1 2' # with longer times than these the patience with the first ones would end in time
