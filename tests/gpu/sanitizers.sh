# sanitizers.sh: compute-sanitizer finds nothing in a sample of variants that holds every value of
# every parameter, of masked and unmasked classes; the sample is printed.
#
#     sanitizers.sh [FAMILY TOOL...]   another family, and those tools that can follow it: racecheck
#                                      and initcheck do not know barriers that bulk copies complete
set -u
gate=${ATTN_BUILD:?}/tests/gate
family=${1:-cuda/mma_forward}
[ $# = 0 ] || shift
tools=${*:-memcheck racecheck initcheck synccheck}
case $family in cuda/simt_*|cuda/tf32x3_*) dtype=f32 ;; *) dtype=f16 ;; esac
problem=fwd:$dtype:b1:hq2:hkv1:sq70:sk133:d64:causal:lse
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export PATH=$PATH:/usr/local/cuda/bin
command -v compute-sanitizer >"$work/where" ||
    { echo "skipped: compute-sanitizer is not installed"; exit 77; }

# All tools at once: each spends its time on the host.
for tool in $tools; do
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$gate" --cover 24 1 "$family" \
        "$problem" >"$work/$tool" 2>&1 &
    eval "pid_$tool=$!"
done
bad=0
for tool in $tools; do
    eval "wait \$pid_$tool"
    code=$?
    if [ $code = 77 ]; then
        cat "$work/$tool"
        exit 77
    fi
    right=$(grep -c '^right: ' "$work/$tool")
    echo "$tool: exit code $code, $right variants right: $(tail -n 1 "$work/$tool")"
    if [ $code != 0 ] || [ "$right" -lt 24 ]; then
        bad=1
        head -n 60 "$work/$tool"
    fi
done
grep '^right: ' "$work/memcheck" | sed 's/^right: //; s/: error.*//'
exit $bad
