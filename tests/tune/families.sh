# families.sh: a run of one family is no search of all, and its winner takes the place of another
# family's only where it is clearly faster; what is printed as the winner is what is stored.
. "$(dirname "$0")/common.sh"

# `planted` is slow, and soon searched; `quick` has variants that hang, and never comes to its end.
plant "$work/both" 40 ok hang
for kind in spaces/fake:lua templates/fake:c; do
    file=$work/both/${kind%:*}/planted.${kind#*:}
    sed 's/planted/quick/g' "$file" >"${file%/*}/quick.${kind#*:}"
    sed -i -e 's/"ok", "hang",/"ok",/' -e 's/1,2,3,4,5,.*}, "nothing/1,2,3}, "nothing/' -e 's/cost_ns=$(1000/cost_ns=$(20000/' "$file"
done
path=$work/both

run() { tune --search random --format csv "$@" >out 2>err; }
field() { sed -n 2p out | cut -d, -f"$(head -1 out | tr , '\n' | grep -n "^$1\$" | cut -d: -f1)"; }
best() { "$ATTNTUNE_FAKE" db best "$problem" --path "$path" --format csv | sed -n '2s/.*\(fake\/[a-z]*\).*/\1/p'; }
count() { list 2>/dev/null | grep "$1" | grep -c '"outcome": "ok"'; }
interrupted() { # interrupted FAMILY-THAT-HAS-TO-BE-MEASURED ARGUMENT...
    local family=$1
    shift
    ( trap - INT; exec "$ATTNTUNE_FAKE" tune "$problem" --device fake --path "$path" --search random --budget 60s --format csv "$@" ) >out 2>err &
    for moment in $(seq 200); do
        [ "$(count "fake/$family")" -ge 1 ] && break
        sleep 0.05
    done
    kill -INT $!
    wait $!
}
agree() { [ "$(field winner)" = "$1" ] && [ "$(best)" = "$1" ] || fail "$2: printed $(field winner), stored $(best): $(cat out err)"; }

families() {
    run --family planted --budget 60s || fail "exit code $?: $(cat out err)"
    [ "$(field search)" = complete ] || fail "it is $(field search): $(cat out)"
    agree fake/planted "of one family"

    interrupted quick
    agree fake/quick "a winner that is ten times as fast"
    grep -q 'the winner is provisional' err || fail "it does not say that it is provisional: $(cat err)"

    # Every family has a trial, one is done, and there was no time for the rest: the search goes on.
    tried=$(list | grep -c '"outcome": "[^l]')
    run --budget $((4 * scale))s || fail "exit code $?: $(cat out err)"
    [ "$(field search)" = stopped ] || fail "it does not go on: $(cat out)"
    first=$(sed -n '1s/.*: \([0-9]*\) tried.*/\1/p' err)
    [ "$first" = "$tried" ] || fail "$tried were tried before, but it begins with $first: $(cat err)"
    [ "$(field tried)" -gt "$tried" ] || fail "nothing was tried: $(cat out)"
    agree fake/quick "after going on"

    # A winner without final rounds is a rival, too.
    rm -f "$ATTNTUNE_DB"*
    interrupted quick --family quick
    agree fake/quick "an interrupted run of one family"
    run --family planted --budget 60s || fail "exit code $?: $(cat out err)"
    agree fake/quick "a slower family"
    grep -q 'fake/quick stays the winner, with .* the best of fake/planted .* has' err || fail "nothing says why: $(cat err)"
}
in_time families
