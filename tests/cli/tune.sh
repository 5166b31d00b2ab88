# A family that was dropped into a folder is tuned: its winner is found, what is broken costs one
# trial each and is named with a command that shows it again, and the same command has nothing left
# to do.
. "$TESTS/cli/family.sh"
attntune-fake tune $problem $mine --search exhaustive --budget 60s 2>log
echo "exit $?"
grep -A1 -E '^fake/tiny .*: (wrong|compile_error|crash)' log | sort
echo "--- what is said of a failure can be run"
again=$(sed -n 's/^ *again: attntune //p' log | grep BUG=wrong)
eval "attntune-fake $again" 2>&1
echo "exit $?"
echo "--- again"
attntune-fake tune $problem $mine --search exhaustive --budget 60s --format jsonl 2>log
echo "exit $?"
grep -c again: log || :
