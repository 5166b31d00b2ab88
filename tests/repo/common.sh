# common.sh: what every check of the repository begins with.
set -u
cd "${ATTN_SOURCE:-$(dirname "$0")/../..}" || exit 1

skip() {
    echo "skipped: $*"
    exit 77
}

need() { # need TOOL [MAJOR]: skip without the tool, or without that major version of it
    command -v "$1" >/dev/null || skip "$1 is not installed"
    [ $# -lt 2 ] || "$1" --version | grep -q "version $2\." || skip "$1 is not version $2"
}

need git
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "not a git checkout"

files() { # files PATTERN...: tracked and new files that match and exist
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while read -r file; do [ -f "$file" ] && echo "$file"; done
}
