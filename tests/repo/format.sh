# format.sh: clang-format 14 would change nothing, in C and in the templates.
. "$(dirname "$0")/common.sh"
need clang-format 14
files '*.c' '*.h' '*.cu' '*.cuh' | xargs -r clang-format --dry-run -Werror
