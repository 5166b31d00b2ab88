# Families, parameters, values, devices, architectures and files that are not there.
problem=fwd:f32:b1:h1:s64:d64
try attntune space simd_forwad
try attntune space softmax_of_mine
try attntune space cuda/simd_forward
try attntune tune $problem --family simd_forwrd
try attntune verify $problem --family none
try attntune verify $problem --config 'NV=1'
try attntune verify $problem --config 'simd_forwad: NV=1'
try attntune verify $problem --config 'simd_forward: NW=1'
try attntune verify $problem --config 'simd_forward: NV=1' --config 'simd_forward: NV=2'
try attntune bench $problem --config 'simd_forward: NV=99'
try attntune db best --family simd_forwad
try attntune show simd_forwad $problem
try attntune show simd_forward $problem BLOK_K=96
try attntune show simd_forward $problem BLOCK_K=97
try attntune show simd_forward $problem 96
try attntune show simd_forward $problem --arch cpu:avx1024
try attntune show simd_forward $problem --arch sm_90a
try attntune show mma_forward $problem --arch sm_90
try attntune show simd_forward $problem --config 'BLOK_K=96'
try attntune show simd_forward $problem --config 'decode_forward: BLOCK_K=96'
try attntune show amx_forward fwd:bf16:b1:h1:s64:d64 --arch cpu:avx512
try attntune space amx_forward fwd:f16:b1:h1:s64:d64 --arch cpu:avx512_amx
try attntune space simd_forward $problem --device tpu
try attntune tune $problem --device cuda:7
try attntune bench $problem --device gpu
try attntune verify $problem --device cpu:1
try attntune devices --device nothing
try attntune tune $problem --path /none/such
mkdir -p my/spaces/cpu
try attntune tune $problem --path my/spaces
try env ATTNTUNE_PATH=my/spaces attntune space
try attntune db list --db none.db
try attntune db prune --db none.db
try attntune db import /dev/zero
try attntune db check --db none.db
try attntune db export --db none.db
try attntune db import none.txt
try attntune db merge none.db
try attntune db best --system-db none.db
try attntune db bundle
touch there.db
try attntune db bundle -o there.db
ls "$XDG_CACHE_HOME"
try attntune space simd
try attntune bench fwd:f32:b1:h1:s64:d64 --config "cpu/simd_forward: nv=1"
try attntune bench fwd:f32:b1:h1:s64:d64 --config "$(printf 'NV=1 %.0s' {1..50})"
attntune show cpu/simd_forward fwd:f32:b1:h1:s64:d64 default | head -c 2
