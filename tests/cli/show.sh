# What show prints compiles by the command on its first line, for every architecture that the
# compiler here can build for, and names where it came from.
problem=fwd:f32:b2:hq4:hkv2:sq100:sk200:d64:causal:lse
attntune show simd_forward $problem >simd_forward.c || exit
command=$(sed -n '1s,^// ,,p' simd_forward.c)
eval "$command" || exit
ls simd_forward.o
grep -c '^#line' simd_forward.c >/dev/null || echo "no #line"
attntune show simd_forward $problem -o "a file.c" OPT=-O2 BLOCK_K=48 || exit
head -1 "a file.c" | grep -o "'a file.c'"
eval "$(sed -n '1s,^// ,,p' 'a file.c')" && ls 'a file.o'
grep -E '^// (family|class) ' 'a file.c'
grep -c '^// config .*BLOCK_K=48' 'a file.c'
attntune show simd_forward $problem --config "OPT=-O2 BLOCK_K=48" -o "a file.c.2" && sed 1d "a file.c.2" | diff - <(sed 1d "a file.c")
for arch in cpu:generic cpu:avx2 cpu:avx512; do
    for family in simd_forward decode_forward; do
        attntune show $family $problem --arch $arch >$family.c || exit
        [ "$(uname -m)" = x86_64 ] || continue
        eval "$(sed -n '1s,^// ,,p' $family.c)" || echo "$family does not compile for $arch"
    done
done
for config in GROUPS=1 "LOAD_KV=keep GROUPS=8 BLOCK_K=64" "EXP_DEGREE=5 BLOCK_K=256 OPT=-O2"; do
    attntune show amx_forward fwd:bf16:b1:h4:s999:d80:dv48:window9,0 $config --arch cpu:avx512_amx \
        >amx_forward.c || exit
    [ "$(uname -m)" = x86_64 ] || continue
    eval "$(sed -n '1s,^// ,,p' amx_forward.c)" || echo "amx_forward does not compile with $config"
done
