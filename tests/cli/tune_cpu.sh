# The same on the CPU, with real kernels: a family of four variants is compiled, proved, measured,
# listed and benched.
mkdir -p my/spaces/cpu my/templates/cpu
cp "$TESTS/toy/templates/cpu/toy_forward.c" my/templates/cpu/two_forward.c
sed -e 's/toy_forward/two_forward/g' -e 's/{ 1, 4, 16 }/{ 1, 4 }/' \
    -e 's/{ 1, 2, 4, 8 }/{ 1, 4 }/' -e 's/{ "row", "longest_first" }/{ "row" }/' \
    -e 's/{ "-O1", "-O2" }/{ "-O2" }/' -e '/core = /d' \
    "$TESTS/toy/spaces/cpu/toy_forward.lua" >my/spaces/cpu/two_forward.lua
mine="--device cpu --family two_forward --path my"
problem=fwd:f32:b1:h1:s48:d16:causal:lse
attntune tune $problem $mine --search exhaustive --threads 1 --budget 60s --format csv 2>log |
    cut -d, -f1,2,7,8,12,13
echo "exit ${PIPESTATUS[0]}"
attntune verify $problem $mine 2>&1 | grep 'variants right'
attntune db list --format csv --path my | cut -d, -f4-7,12 | sort -u
# One row, if the default has won.
attntune bench $problem $mine --threads 1 --rounds 3 --format csv | sed 1d >rows
grep -o 'winner\|default' rows
grep -v ',ok,.*,cpu/two_forward,' rows || :
