# tidy.sh: clang-tidy 14 on every C file of this build, by its own compile command.
#
# ATTN_TIDY_NODES: how many states of a function the analyzer visits at most. Nearly every function
# has more than it would ever visit, so this is what its time is made of; it goes first where it has
# not been. Its own number, 225000, is for the long tests.
. "$(dirname "$0")/common.sh"
need clang-tidy 14
build=${ATTN_BUILD:?}
[ -f "$build/compile_commands.json" ] || skip "no compile_commands.json in $build"

# Only files that the build compiles: clang-tidy would guess the flags of the others.
list=$(files '*.c' | grep -v '^templates/' |
    while read -r file; do grep -q "/$file\"" "$build/compile_commands.json" && echo "$file"; done)
[ -n "$list" ] || skip "the build has no sources yet"
echo "$list" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Xclang --extra-arg=-analyzer-config \
    --extra-arg=-Xclang --extra-arg=max-nodes="${ATTN_TIDY_NODES:-50000}" 2>&1 |
    grep -vE '^[0-9]+ warnings? |^Suppressed|^Use -header-filter'
[ "${PIPESTATUS[1]}" = 0 ]
