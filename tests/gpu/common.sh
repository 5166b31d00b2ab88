# common.sh: what the scripts for a GPU begin with: an empty folder that is gone at the end, a
# database of its own, and a way out where there is no GPU.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir -m 700 cache hidden
export XDG_CACHE_HOME=$work/cache ATTNTUNE_SYSTEM_DB=$work/none.db TERM=dumb
export ATTNTUNE_DB=$work/cache/tune.db
unset ATTNTUNE_PATH ATTNTUNE_RECORD
bad=0

fail() {
    echo "FAILED: $*"
    bad=1
}
list() { "$ATTNTUNE" db list --all --format jsonl; }

# hide LIBRARY...: a folder in which these are empty files; before all others in LD_LIBRARY_PATH it
# makes dlopen fail.
hide() {
    local folder=$work/hidden/$1 library
    mkdir -p "$folder"
    for library in "$@"; do : >"$folder/$library"; done
    echo "$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
nvrtc="libnvrtc.so libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2"
jitlink="libnvJitLink.so libnvJitLink.so.13 libnvJitLink.so.12"

if ! "$ATTNTUNE" devices --device cuda:0 >devices 2>devices.err; then
    echo "skipped: no NVIDIA GPU: $(tail -n 1 devices.err)"
    exit 77
fi
