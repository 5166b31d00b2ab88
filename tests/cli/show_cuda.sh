# What show prints of each CUDA family compiles by the command on its first line: nvcc.
command -v nvcc >/dev/null || skip "nvcc is not installed"
problem=fwd:f16:b1:hq4:hkv2:s100:d64:causal
for arch in sm_80 sm_90a; do
    for family in $(attntune space --format csv | grep -o '^cuda/[a-z0-9_]*'); do
        if ! attntune show $family $problem --arch $arch >${family#cuda/}.cu 2>why; then
            grep -q 'does not accept' why || echo "$family on $arch: $(cat why)"
            continue
        fi
        command=$(sed -n '1s,^// ,,p' ${family#cuda/}.cu)
        eval "$command" >log 2>&1 || { echo "$family on $arch: $command"; cat log; }
    done
done
