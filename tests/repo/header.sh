# header.sh: the public header compiles alone, as C11 and as C++17, with every compiler here.
. "$(dirname "$0")/common.sh"
flags="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only -Iruntime/include"
tried=0
both='#include <attntune/attntune.h>
#include <attntune/attntune.h>
attn_forward_tensors tensors = ATTN_FORWARD_TENSORS_INIT;
attn_options options = ATTN_OPTIONS_INIT;'
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    echo "$both" | $compiler -std=c11 $flags -x c - || exit 1
    tried=1
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    echo "$both" | $compiler -std=c++17 $flags -x c++ - || exit 1
done
[ $tried = 1 ] || skip "neither gcc nor clang is installed"
