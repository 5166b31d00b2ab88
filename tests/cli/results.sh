# Results travel: listed, exported, imported, merged, bundled, pruned, checked.
. "$TESTS/cli/family.sh"
chmod 700 .
attntune-fake tune $problem $mine --search exhaustive --budget 60s >/dev/null 2>&1
echo "--- list"
attntune-fake db list --path my --format csv | cut -d, -f3-8,10,12- | sort
attntune-fake db list --path my --limit 2 2>&1 >/dev/null
echo "--- best"
attntune-fake db best --path my --format jsonl >best
sed 's/"ended": "[^"]*"/"ended": "..."/' best
attntune-fake db best $problem fwd:f32:b1:h1:s1:d16 --path my >/dev/null
echo "exit $?"
echo "--- export, import"
attntune-fake db export -o all.txt
attntune-fake db export --winners >winners.txt
attntune-fake db import --db one.db all.txt
attntune-fake db import --db one.db - <winners.txt
attntune-fake db import --db few.db winners.txt all.txt
attntune-fake db best --db few.db --path my --format csv | cut -d, -f6
attntune-fake db best --db one.db --path my --format jsonl | sed 's/"binary": null/"binary": "stored"/' | diff best -
attntune-fake db export --db one.db | diff all.txt - && echo "the same text"
echo "--- merge, check"
attntune-fake db merge --db two.db one.db "$(attntune-fake db path)"
attntune-fake db check --db two.db
echo "--- bundle"
attntune-fake db bundle --path my -o bundle.db
attntune-fake db best --path my --db two.db --system-db bundle.db --format csv | cut -d, -f1,5,9
XDG_CACHE_HOME=$PWD/none attntune-fake db best --path my --system-db bundle.db --format csv | cut -d, -f1,5,9
echo "--- prune"
attntune-fake db prune --db two.db --path my
sed -i 's/A few made-up times/Some made-up times/' my/spaces/fake/tiny.lua # the same source
attntune-fake db best --db two.db --path my --format csv | cut -d, -f5,11
attntune-fake db prune --db two.db --path my --dry-run
sed -i 's/nothing here is compiled/another source/' my/templates/fake/tiny.c
attntune-fake db best --db two.db --path my --format csv | cut -d, -f5,11
attntune-fake db prune --db two.db --path my --dry-run
attntune-fake db prune --db two.db --path my
attntune-fake db list --db two.db --path my
