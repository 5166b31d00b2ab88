# run.sh: runs one test of the command line: run.sh NAME.sh
#
# The script runs in an empty folder, with `attntune` and `attntune-fake` in its PATH, and a
# database of its own. What it prints, and its exit code, are compared with NAME.stdout,
# NAME.stderr (nothing, where there is no file) and NAME.exit (0); `*` in them stands for anything.
# ATTN_UPDATE_GOLDEN=1 writes the files instead, for review; put the `*` back.
set -u
script=$(realpath "$1")
base=${script%.sh}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin" "$work/cache" "$work/in"
ln -s "$ATTNTUNE" "$work/bin/attntune"
[ -z "${ATTNTUNE_FAKE:-}" ] || ln -s "$ATTNTUNE_FAKE" "$work/bin/attntune-fake"
export PATH=$work/bin:$PATH XDG_CACHE_HOME=$work/cache TERM=dumb
export ATTNTUNE_SYSTEM_DB=$work/none.db # what is shipped may change from day to day
unset ATTNTUNE_DB ATTNTUNE_PATH ATTNTUNE_RECORD
export TESTS=${base%/cli/*}
chmod 700 "$work/cache"

# For scripts: each command with its exit code, all in one stream.
try() {
    echo "\$ $*"
    "$@" 2>&1
    echo "exit $?"
}
skip() {
    echo "$*" >"$work/skip"
    exit 77
}
export -f try skip
export work

(cd "$work/in" && bash -u "$script" >"$work/stdout" 2>"$work/stderr" </dev/null)
code=$?
if [ $code = 77 ] && [ -f "$work/skip" ]; then
    echo "skipped: $(cat "$work/skip")"
    exit 77
fi

# Paths of this run are written as $work, so that they are the same in every run; and other tests may
# hold the timing lock.
for stream in stdout stderr; do
    sed -i -e "s,$work,\$work,g" -e '/waiting for another tuner, which holds/d' \
        -e 's/; waiting for another tuner$//' "$work/$stream"
done

# Only `*` is special: everything else that a shell pattern might know is quoted.
matches() { # matches TEXT PATTERN
    local pattern
    pattern=$(printf '%s' "$2" | sed 's/[][\\?(){}|!@+^]/\\&/g')
    [[ $1 == $pattern ]]
}

bad=0
compare() { # compare NAME ACTUAL EXPECTED
    matches "$2" "$3" && return
    bad=1
    echo "--- $1: expected"
    printf '%s\n' "$3"
    echo "--- $1: was"
    printf '%s\n' "$2"
    echo "--- difference"
    diff <(printf '%s\n' "$3") <(printf '%s\n' "$2")
}

expected() { # expected ENDING OTHERWISE
    if [ -f "$base.$1" ]; then cat "$base.$1"; else printf '%s' "$2"; fi
}

if [ -n "${ATTN_UPDATE_GOLDEN:-}" ]; then
    for stream in stdout stderr; do
        rm -f "$base.$stream"
        [ ! -s "$work/$stream" ] || cp "$work/$stream" "$base.$stream"
    done
    rm -f "$base.exit"
    [ $code = 0 ] || echo $code >"$base.exit"
    exit 0
fi
compare "exit code" "$code" "$(expected exit 0)"
compare stdout "$(cat "$work/stdout")" "$(expected stdout '')"
compare stderr "$(cat "$work/stderr")" "$(expected stderr '')"
exit $bad
