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
