# Problems without a winner: each family that was asked is named with its reason.
. "$TESTS/cli/family.sh"
try attntune-fake tune fwd:f16:b1:h2:s32:d16 $mine
try attntune-fake tune fwd:f16:b1:h2:s32:d16 $mine --format csv
try attntune-fake tune $mine
try attntune-fake tune $problem --device fake
try attntune-fake bench fwd:f16:b1:h2:s32:d16 $mine
try attntune-fake verify fwd:f16:b1:h2:s32:d16 $mine
