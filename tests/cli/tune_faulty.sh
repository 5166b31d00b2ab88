# Why there is no winner is what has happened, and a search that could not try what is there is not
# complete: errors of a space file, wherever they are, and a problem that no launch fits.
. "$TESTS/cli/family.sh"
cp my/spaces/fake/tiny.lua good.lua
tune() {
    attntune-fake tune "$@" $mine --family tiny --budget 30s --format csv 2>/dev/null | sed 1d | cut -d, -f2,7,12,15-
    echo "exit ${PIPESTATUS[0]}"
}
faulty() { # faulty NAME SED-SCRIPT
    echo "--- $1"
    sed "$2" good.lua >my/spaces/fake/tiny.lua
    tune $problem
}
faulty defaults 's/defaults = .*/defaults = function(p) return { COST = 17, BUG = "none" } end,/'
faulty launch 's/launch = .*/launch = function(c) return { { grid = "tiles", rows = c.NONE } } end,/'
faulty derive 's/launch = .*/derive = function(c) c.X = c.COST + nil end, launch = function(c) return { { grid = "tiles", rows = c.X } } end,/'
faulty require 's/function(c) return c.BUG == /function(c) return c.BUG < 1 or c.BUG == /'
echo "--- too large"
cp good.lua my/spaces/fake/tiny.lua
tune fwd:f32:b16777216:h1:s268435456:d1024
