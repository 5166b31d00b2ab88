#!/usr/bin/env bash
# A warm attn_run allocates nothing, and makes no system call but the pool's futex: none at all on
# one thread.
set -euo pipefail
if ! command -v strace >/dev/null; then
    echo "skipped: strace is not installed"
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for threads in 1 2; do
    strace -f -o "$log" "$ATTN_BUILD/tests/quiet_run" "$threads" || {
        echo "quiet_run $threads failed"
        exit 1
    }
    marks=$(grep -c 'getppid(' "$log")
    [ "$marks" = 2 ] || {
        echo "want 2 marks in strace's log, found $marks"
        exit 1
    }
    # Lines of any thread between the two marks, as names of calls.
    calls=$(awk '/getppid\(/ { inside = !inside; next } inside && !/getppid resumed/' "$log" |
        sed -E 's/^[0-9]+ +(<\.\.\. )?([a-z0-9_]+).*/\2/' | sort | uniq -c)
    others=$(grep -v ' futex$' <<<"$calls" || true)
    [ "$threads" = 1 ] && others=$calls
    [ -z "$others" ] || {
        echo "$threads threads: system calls in a warm attn_run:"
        echo "$others"
        exit 1
    }
done
echo "no allocation; no system call on 1 thread, futex alone on 2"
