# Every variant, one, or the winner; exit code 1 if one is wrong.
. "$TESTS/cli/family.sh"
echo "--- all"
attntune-fake verify $problem $mine --format csv 2>log | cut -d, -f1-3,5,6 | sort
echo "exit ${PIPESTATUS[0]}"
tail -1 log
echo "--- one"
attntune-fake verify $problem $mine --config 'tiny: COST=200' 2>&1 | sed -n '$p'
attntune-fake verify $problem $mine --config 'tiny: COST=400 BUG=crash' >/dev/null 2>&1
echo "exit $?"
try attntune-fake verify $problem $mine --config 'tiny: BUG=crash'
echo "--- the winner"
attntune-fake verify $problem $mine --winner
echo "exit $?"
attntune-fake tune $problem $mine --search exhaustive --budget 60s >/dev/null 2>&1
attntune-fake verify $problem $mine --winner 2>&1 | tail -1
