# Verbs and words that are not there, or too many.
try attntune tunee
try attntune explain fwd:f32:b1:h1:s64:d64
try attntune fwd:f32:b1:h1:s64:d64
try attntune @shapes.txt
try attntune db
try attntune db bets
try attntune db db
try attntune devices cpu
try attntune space a b c
try attntune show
try attntune show simd_forward
try attntune bench
try attntune verify
try attntune db import
try attntune db merge
try attntune db path x
try attntune ''
cd "$ATTN_SOURCE" || exit
for words in tset tuen build "test --lnog"; do
    echo "\$ ./bootstrap $words"
    # shellcheck disable=SC2086
    ./bootstrap $words 2>&1 | head -1
done
