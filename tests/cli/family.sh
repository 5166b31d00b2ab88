# The family that these tests tune on the fake device: in folder `my`, which is a family that was
# dropped in. Its times are made up and without noise, and some of its variants are broken on
# purpose. Sourced by scripts: . "$TESTS/cli/family.sh"
mkdir -p my/spaces/fake my/templates/fake
cat >my/spaces/fake/tiny.lua <<'LUA'
return family {
  name = "tiny", op = "forward", backend = "fake", template = "fake/tiny.c",
  doc = "A few made-up times.",
  accepts = function(p)
    if p.dtype ~= "f32" then return false, "it is for f32" end
    return true
  end,
  params = {
    { "COST", { 300, 200, 100, 400 }, "microseconds" },
    { "BUG", { "none", "wrong", "compile_error", "crash" }, "what goes wrong" },
  },
  require = {
    { "what is broken costs 400", { "COST", "BUG" },
      function(c) return c.BUG == "none" or c.COST == 400 end },
  },
  launch = function(c) return { { grid = "tiles", rows = 16 } } end,
  defaults = function() return { COST = 300, BUG = "none" } end,
}
LUA
cat >my/templates/fake/tiny.c <<'C'
/* tiny.c: what the fake device is told; nothing here is compiled. */
#include "attn_abi.h"

//@ local outcome = BUG == "none" and "ok" or BUG
// FAKE cost_ns=$(COST * 1000) ns_per_mflop=0 noise=0 outcome=$(outcome)
int $(KERNEL)(const attn_forward_args *a, int task, int worker);
C
problem=fwd:f32:b1:h2:s32:d16
mine="--device fake --path my"
