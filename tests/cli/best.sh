# Winners in order of length, with the lengths from which to which one configuration wins: of two
# families, one is faster for little work and the other for much.
. "$TESTS/cli/family.sh"
chmod 700 .
sed -e 's/tiny/small/g' -e 's/{ 300, 200, 100, 400 }/{ 50 }/' -e 's/COST = 300/COST = 50/' \
    -e '/BUG.*what goes/s/"none".*crash"/"none"/' my/spaces/fake/tiny.lua >my/spaces/fake/small.lua
sed 's/ns_per_mflop=0/ns_per_mflop=100000/' my/templates/fake/tiny.c >my/templates/fake/small.c
attntune-fake tune fwd:f32:b1:h2:s8:d16 fwd:f32:b1:h2:s32:d16 fwd:f32:b1:h2:s128:d16 \
    fwd:f32:b2:h2:s128:d16 fwd:f32:b1:h2:s96:d16:causal fwd:f32:b1:h1:sq1:sk64:d16 fwd:f32:b1:h1:sq1:sk256:d16 \
    $mine --search exhaustive --budget 60s >/dev/null 2>&1
attntune-fake db best --path my --format csv | cut -d, -f5,12-
echo "--- of some problems, of one family"
attntune-fake db best --path my fwd:f32:b1:h2:s8:d16 fwd:f32:b1:h1:sq1:sk64:d16 --format csv | cut -d, -f5,13
attntune-fake db best --path my --family small --format csv | cut -d, -f5,13
echo "--- of a device that is not here"
export CUDA_VISIBLE_DEVICES= # not even there
mine() { cut -d, -f2,5 | sort | uniq -c | sed 's/^ *//; s/^[0-9]* NVIDIA H200.*/many of NVIDIA H200/' | uniq; }
attntune-fake db import "$ATTN_SOURCE/db/seed/nvidia_h200.txt" 2>/dev/null
attntune-fake db best --path my fwd:f32:b1:h2:s8:d16 --format csv 2>&1 | mine
attntune-fake db best --path my --family small --format csv 2>&1 | mine
attntune-fake db best --path my --format csv 2>&1 >/dev/null | sed 's/[0-9][0-9]* winners/many winners/'
attntune-fake db best --path my --device cuda 2>&1 | sed 's/^attntune: [0-9][0-9]* winners/many winners/'
attntune-fake db best --path my --all --format csv 2>&1 | mine
attntune-fake db bundle --path my -o bundle.db 2>&1 | sed 's/ [0-9][0-9]* winners/ many winners/; s/[0-9][0-9]* without/many without/'
attntune-fake db bundle --path my --device all -o here.db 2>&1
echo "--- winners whose binaries are not stored and cannot be built again"
attntune-fake db export -o all.txt 2>/dev/null
attntune-fake db import --db some.db all.txt 2>/dev/null
sed -i 's/nothing here is compiled/another source/' my/templates/fake/tiny.c my/templates/fake/small.c
attntune-fake db bundle --path my --db some.db --device all -o stale.db 2>&1
