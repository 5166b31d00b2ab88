# The winner, the default and chosen configurations side by side; what cannot run is named.
. "$TESTS/cli/family.sh"
echo "--- nothing is tuned yet"
attntune-fake bench $problem $mine --rounds 3
echo "exit $?"
attntune-fake tune $problem $mine --search exhaustive --budget 60s >/dev/null 2>&1
echo "--- with a winner"
attntune-fake bench $problem $mine --rounds 3 --config 'tiny: COST=400' --config 'fake/tiny: COST=200'
echo "exit $?"
echo "--- with a broken one"
attntune-fake bench $problem $mine --rounds 3 --family tiny --config 'COST=400 BUG=wrong' 2>log
echo "exit $?"
grep -o 'again: attntune verify .*' log
echo "--- what the default won"
chmod 700 .
sed -e 's/tiny/dull/g' -e 's/300, 200, 100, 400/100, 300, 400/' -e 's/COST = 300/COST = 100/' \
    my/spaces/fake/tiny.lua >my/spaces/fake/dull.lua # its default is its best
cp my/templates/fake/tiny.c my/templates/fake/dull.c
attntune-fake tune $problem $mine --db default.db --search exhaustive --budget 60s --family dull >/dev/null 2>&1
attntune-fake bench $problem $mine --db default.db --rounds 3 --family dull --config COST=100 --config COST=300
