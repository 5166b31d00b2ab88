# readme.sh: the family that README.md shows is lint-free, right, tuned and listed, as it says there.
. "$(dirname "$0")/common.sh"
export ATTNTUNE_PATH
ATTNTUNE_PATH=$(mktemp -d)
export ATTNTUNE_DB=$ATTNTUNE_PATH/attntune.db
trap 'rm -rf "$ATTNTUNE_PATH"' EXIT
mkdir -p "$ATTNTUNE_PATH/spaces/cpu" "$ATTNTUNE_PATH/templates/cpu"

block() { # block LANGUAGE: the code block that follows the heading of the section
    awk -v fence="\`\`\`$1" '/^## Add a kernel family/ { section = 1 }
        inside && /^```/ { exit }
        inside { print }
        section && $0 == fence { inside = 1 }' README.md
}
block lua >"$ATTNTUNE_PATH/spaces/cpu/row_forward.lua"
block c >"$ATTNTUNE_PATH/templates/cpu/row_forward.c"

run() { "$ATTNTUNE" "$@" || { echo "failed: attntune $*"; exit 1; }; }
run space row_forward --lint
run verify fwd:f32:b1:h2:s100:d64:causal --family row_forward --device cpu
run tune fwd:f32:b1:h2:s100:d64:causal --family row_forward --device cpu --budget 15s
run db best | grep cpu/row_forward || { echo "db best does not list it"; exit 1; }
