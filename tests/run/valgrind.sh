#!/usr/bin/env bash
# The examples under valgrind: no error, no leak. AVX-512 is more than valgrind can run.
set -euo pipefail
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed"
    exit 77
fi
for example in "example_attention" "example_decode 8"; do
    # shellcheck disable=SC2086  # the example's argument
    ATTNTUNE_CPU_ISA=avx2 valgrind -q --error-exitcode=9 --leak-check=full "$ATTN_BUILD"/bin/$example
done
