# preferred_first.sh: of the families' defaults, the one that the library would run is tried first,
# whatever the names: a short budget may not come to the others. With one compiler: of two, either
# may be the first to end.
. "$(dirname "$0")/common.sh"

# `planted` comes first in the alphabet, and hangs; `zebra` is preferred.
plant "$work/both" 1 hang
for kind in spaces/fake:lua templates/fake:c; do
    file=$work/both/${kind%:*}/planted.${kind#*:}
    sed -e 's/planted/zebra/g' -e 's/op = "forward"/&, preference = 1/' -e 's/hang/ok/g' "$file" \
        >"${file%/*}/zebra.${kind#*:}"
done
ended() { list 2>/dev/null | grep -v '"outcome": "running"'; }
( trap - INT; exec "$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$work/both" --jobs 1 --budget 60s ) >out 2>&1 &
for moment in $(seq 400); do
    ended >rows && break
    sleep 0.05
done
kill -INT $!
wait $!
grep -q '"family": "fake/zebra"' rows || fail "tried before the preferred family: $(cat rows out)"
exit $bad
