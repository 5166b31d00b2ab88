# two.sh: two tuners on one CPU at once take turns: their medians are within 3 % of those of one
# alone, although each compiles and proves while the other measures.
. "$(dirname "$0")/common.sh"
problem=fwd:f32:b1:h2:s256:d64

run() { # run NAME: every variant of the toy family, into a database of its own
    ATTNTUNE_DB=$work/cache/$1.db tune --device cpu --family cpu/toy_forward --search exhaustive --budget 120s >"$1.out" 2>"$1.err" ||
        fail "$1: exit code $?: $(cat "$1.err")"
    ATTNTUNE_DB=$work/cache/$1.db list | sed -n 's/.*"ms": \([0-9.]*\),.*"config": "\([^"]*\)".*/\2=\1/p' | tr ' ' _ | tr = ' ' |
        sed 's/\(.*\) /\1=/' | sort >"$1.ms"
}
median_ratio() { # of the times in $2 to those in $1
    join -t= "$1" "$2" | awk -F= '{ print $3 / $2 }' | sort -n | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }'
}
tune() { "$ATTNTUNE_FAKE" tune "$problem" --path "$toy" "$@"; }

# Judged only while the machine itself holds still: one alone, before and after, must agree.
still=0
for attempt in 1 2 3; do
    rm -f cache/*.db*
    run alone
    run left &
    run right
    wait
    run after
    drift=$(median_ratio alone.ms after.ms)
    left=$(median_ratio alone.ms left.ms)
    right=$(median_ratio alone.ms right.ms)
    echo "attempt $attempt: $(wc -l <alone.ms) variants; at once $left and $right of alone; alone again $drift"
    [ $bad = 0 ] || exit 1
    echo "$left $right" | awk '{ exit !($1 > 0.97 && $1 < 1.03 && $2 > 0.97 && $2 < 1.03) }' && exit 0
    echo "$drift" | awk '{ exit !($1 > 0.98 && $1 < 1.02) }' && still=1
done
[ $still = 1 ] || { echo "skipped: the machine is not quiet"; exit 77; }
fail "the medians of two at once differ by more than 3 %"
exit $bad
