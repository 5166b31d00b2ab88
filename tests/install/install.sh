# install.sh: installs to a temporary prefix, moves it, and builds a consumer through CMake and
# through pkg-config, shared and static.
set -eu
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$ATTN_BUILD" --prefix "$prefix/first" >/dev/null
mv "$prefix/first" "$prefix/moved"
here=$ATTN_SOURCE/tests/install
flags=${ATTN_SANITIZE:+-fsanitize=$ATTN_SANITIZE}

expect() { # expect PROGRAM: it runs and prints a version and the problem in canonical form
    output=$("$@")
    echo "$output" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+ fwd:f32:b1:h4:s128:d64$' ||
        { echo "$1 printed: $output"; exit 1; }
}

cmake -G Ninja -S "$here" -B "$prefix/cmake" -DCMAKE_PREFIX_PATH="$prefix/moved" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_FLAGS="$flags" >"$prefix/log" 2>&1 &&
    cmake --build "$prefix/cmake" >>"$prefix/log" 2>&1 || { cat "$prefix/log"; exit 1; }
expect "$prefix/cmake/with_shared"
expect "$prefix/cmake/with_static"

# The installed program finds the shipped results of the place it was moved to.
mkdir -p "$prefix/moved/share/attntune"
touch "$prefix/moved/share/attntune/system.db"
found=$(realpath "$("$prefix/moved/bin/attntune" db path --system)")
[ "$found" = "$(realpath "$prefix/moved/share/attntune/system.db")" ] ||
    { echo "the shipped results are looked for in $found"; exit 1; }

# The shared library shows what attntune.h declares and nothing else: not Lua, SQLite or internals.
library=$(find "$prefix/moved" -name 'libattntune.so')
declared=$(grep -oE '\battn_[a-z_]+\(' "$ATTN_SOURCE/runtime/include/attntune/attntune.h" | tr -d '(' | sort -u)
extra=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | grep -v '^__asan\|^__odr_asan' |
    grep -vxF "$declared" || true)
[ -z "$extra" ] || { echo "libattntune.so exports more than its header:" $extra; exit 1; }

command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not installed"; exit 77; }
PKG_CONFIG_PATH=$(dirname "$(find "$prefix/moved" -name attntune.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir attntune)
# shellcheck disable=SC2046  # the flags are words
$CC $flags "$here/consumer.c" $(pkg-config --cflags --libs attntune) -o "$prefix/shared"
LD_LIBRARY_PATH=$libdir expect "$prefix/shared"
rm "$libdir"/libattntune.so*
# shellcheck disable=SC2046
$CC $flags "$here/consumer.c" $(pkg-config --cflags --static --libs attntune) -o "$prefix/static"
expect "$prefix/static"
