# Problems that cannot be read, on the command line and in files.
try attntune tune fwd:f32:b1:h1:s64
try attntune tune fwd:f33:b1:h1:s64:d64
try attntune tune fwd:f32:b1:h3:hkv2:s64:d64
try attntune tune fwd:f32:b1:hq3:hkv2:s64:d64
try attntune verify fwd:f32:b1:h1:s64:d64:casual
try attntune bench bwd:f32:b1:h1:s64:d64
try attntune db best fwd:f32:b1:h1:s64:d64:d64
try attntune space simd_forward fwd:f32
try attntune show simd_forward fwd:f32:b1
try attntune tune @none.txt
touch plain
ln -s loop loop
long=$(printf '%0300d' 0)
for verb in "tune --dry-run" verify bench "db best" "db bundle -o none"; do
    try attntune $verb @plain/x
    try attntune $verb @$long
done
try attntune tune @loop
try attntune tune @.
try attntune db import $long
try attntune db best --db $long
try attntune db best --system-db plain/x
try attntune tune @
printf '# only a comment\n\n' >empty.txt
try attntune tune @empty.txt
printf '# shapes\n fwd:f32:b1:h1:s64:d64  # right\r\nfwd:f32:b1:h1:s64:d64:whole\n' >bad.txt
try attntune tune @bad.txt
try attntune db best @bad.txt
for word in b2147483648 b-1 b01 b; do
    try attntune tune fwd:f32:$word:h1:s64:d64
done
