# mutants.sh: every planted bug of patches/ is caught by the ordinary gate.
#
# Each patch is applied (patch -p1) to a copy of the templates, which overlays the real ones. Its
# first lines say what the bug is, for which problem, and what the configuration must have for the
# bug to be there. The default and another configuration must both be found wrong: not slow, not
# crashing, not failing to compile.
#
#     mutants.sh [FAMILY PATCHES CONFIG PROBLEM]   of another family: its folder of patches, what the
#                              other configuration has, and a problem that the template is right on
set -u
source=${ATTN_SOURCE:?}
gate=${ATTN_BUILD:?}/tests/gate
family=${1:-cpu/simd_forward}
here=$source/tests/mutants/${2:-patches}
other=${3:-NV=2 MR=4 MRV=4 GROUPS=2 BLOCK_K=48}
right=${4:-fwd:f32:b1:h4:s512:d64:causal}

command -v patch >/dev/null || { echo "skipped: patch is not installed"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

field() { # field NAME FILE: the text behind "NAME: "
    sed -n "s/^$1: *//p" "$2" | head -n 1
}

try() { # try PATCH: prints a line; fails unless the mutant is caught
    local name overlay config problem
    name=$(basename "$1" .patch)
    overlay=$work/$name
    problem=$(field Problem "$1")
    config=$(field Config "$1")
    mkdir -p "$overlay"
    cp -RH "$source/templates" "$overlay/templates" || return 1
    if ! patch -s -p1 -d "$overlay" <"$1" >"$overlay/log" 2>&1; then
        echo "$name: the patch does not apply any more; make it again from the template:"
        cat "$overlay/log"
        return 1
    fi
    mv "$overlay/templates/include" "$overlay/include" # where the generator looks for helpers
    "$gate" --path "$overlay" "$family" "$problem" "$config" \
        "$config $other" >"$overlay/log" 2>&1
    if [ $? = 1 ] && [ "$(grep -c '^wrong: ' "$overlay/log")" = 2 ]; then
        echo "$name: caught: $(sed -n 's/^wrong: .*bound [^ ]*: //p' "$overlay/log" | head -n 1)"
        return 0
    fi
    echo "$name: NOT CAUGHT ($(field What "$1")), $problem"
    cat "$overlay/log"
    return 1
}

# Without a patch the same path must find nothing, or "caught" means nothing.
mkdir -p "$work/none"
cp -RH "$source/templates" "$work/none/templates"
mv "$work/none/templates/include" "$work/none/include"
"$gate" --path "$work/none" "$family" "$right" "" "$other" || exit

total=0 bad=0
for patch in "$here"/*.patch; do
    try "$patch" &
    running="${running:-} $!"
    total=$((total + 1))
    if [ $((total % 2)) = 0 ]; then
        for pid in $running; do wait "$pid" || bad=$((bad + 1)); done
        running=
    fi
done
for pid in ${running:-}; do wait "$pid" || bad=$((bad + 1)); done
echo "$total mutants, $bad not caught"
[ "$total" -ge 12 ] && [ "$bad" = 0 ]
