# common.sh: what every test of whole tuning runs begins with: an empty folder that is gone at the
# end, a database of its own, and the fake device.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir -m 700 cache
export XDG_CACHE_HOME=$work/cache ATTNTUNE_SYSTEM_DB=$work/none.db TERM=dumb
unset ATTNTUNE_PATH ATTNTUNE_RECORD
export ATTNTUNE_DB=$work/cache/tune.db
toy=$ATTN_SOURCE/tests/toy
problem=fwd:f32:b1:h2:s24:d16:lse
bad=0

fail() {
    echo "FAILED: $*"
    bad=1
}
# What others do on the machine may delay a run beyond any limit, and leave it too little time: then
# once more, with all times twice, four and eight times as long. A fault is there each time.
in_time() { # in_time FUNCTION [SCALES]: ends the test; $scale is what the function multiplies times by
    for scale in ${2:-1 2 4 8}; do
        bad=0
        rm -f "$ATTNTUNE_DB"*
        "$1" >attempt 2>&1
        [ $bad = 0 ] && exit 0
        echo "with times $scale times as long:"
        cat attempt
    done
    exit 1
}

tune() { # a run on the fake device with the toy families
    "$ATTNTUNE_FAKE" tune "$problem" --device fake --path "${path:-$toy}" "$@"
}
list() { "$ATTNTUNE_FAKE" db list --all --format jsonl; }
outcomes() { list | sed 's/.*"outcome": "\([a-z_]*\)".*/\1/' | sort | uniq -c | awk '{print $2 "=" $1}' | tr '\n' ' '; }

# Is a process still running? One that nobody has waited for is not.
runs() { grep -q '^State:[[:space:]]*[A-WY]' "/proc/$1/status" 2>/dev/null; }

# A compiler that first does something about each source file, "$word": CC=$(wrapped_cc COMMAND).
wrapped_cc() {
    printf '%s\n' '#!/bin/sh' 'for word; do case $word in *.c)' "$1" ';; esac; done' \
        "exec ${CC:-cc} \"\$@\"" >"$work/wrapped_cc"
    chmod +x "$work/wrapped_cc"
    echo "$work/wrapped_cc"
}

# The real CPU's toy family, with variants of that many rows alone.
toys() { # toys DIR ROWS
    mkdir -p "$1/spaces/cpu" "$1/templates/cpu"
    cp "$toy/templates/cpu/toy_forward.c" "$1/templates/cpu/"
    sed "s/core = .*/core = { ROWS = { $2 }, LANES = { 4 }, ORDER = { \"row\" }, OPT = { \"-O2\" } },/" \
        "$toy/spaces/cpu/toy_forward.lua" >"$1/spaces/cpu/toy_forward.lua"
}

# A family `planted` on the fake device: WHAT says what is wrong with a variant, GRAIN makes more.
plant() { # plant DIR GRAINS WHAT...
    local dir=$1 grains=$2
    shift 2
    mkdir -p "$dir/spaces/fake" "$dir/templates/fake"
    { echo 'return family { name = "planted", op = "forward", backend = "fake",'
        echo '  template = "fake/planted.c", doc = "Variants with faults.",'
        echo '  accepts = function() return true end,'
        echo "  params = { { \"WHAT\", {$(printf ' "%s",' "$@")  }, \"what is wrong\" },"
        echo "    { \"GRAIN\", {$(seq -s, 1 "$grains")}, \"nothing but another cost\" } },"
        echo '  launch = function() return { { grid = "tiles", rows = 16 } } end,'
        echo "  defaults = function() return { WHAT = \"$1\", GRAIN = 1 } end, }"
    } >"$dir/spaces/fake/planted.lua"
    { echo '/* planted.c: what the fake device is told. */'
        echo '#include "attn_abi.h"'
        echo '// FAKE cost_ns=$(1000 + 10 * GRAIN) noise=0.001 outcome=$(WHAT)'
        echo 'int $(KERNEL)(const attn_forward_args *a, int task, int worker);'
    } >"$dir/templates/fake/planted.c"
}
