-- cpu/loop_forward: f32 attention as plain loops: the CPU ladder of a write-up, whose versions are
-- these configurations (each changes the one before). tests/peers/ladder.sh measures them.
--
--   v0  a loop over query rows, one thread  TASK=call ROWS=1 KEYS=1024 PAD=0 EXP=libm MATH=strict
--   v1  -fassociative-math                  MATH=associative
--   v2  -ffast-math                         MATH=fast
--   v3  rows padded to 64 bytes             PAD=1
--   v4  libmvec's exp                       EXP=libmvec
--   v5  the built-in polynomial             EXP=polynomial
--   v6  a task for each (batch, head), as   TASK=head
--       OpenMP's collapse(2) deals them
--   v7  tiles of 32 query rows              TASK=tile ROWS=32 KEYS=64
--
-- The winner is cpu/simd_forward. All else is as in the defaults. OpenMP itself is not used: tasks
-- are dealt by the pool that all families run on; but MATH=simd is -fopenmp-simd, which makes
-- vectors of the loops that say so and nothing else.

-- The one that a value of MARCH names; nil where the device has none of that name, or has it as
-- its widest.
local function instruction_set(march, dev)
  local sets = vector_sets(dev)
  if march == "widest" then return sets[1] end
  for i = 2, #sets do
    if sets[i].name == march then return sets[i] end
  end
end

local MATH = {
  strict = {},
  simd = { "-fopenmp-simd" },
  associative = { "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-fno-math-errno" },
  fast = { "-ffast-math" },
}
local PARTS = { full = 1, half = 2, quarter = 4 }

return family {
  name = "loop_forward", op = "forward", backend = "cpu", template = "cpu/loop_forward.c",
  doc = "Plain loops over query rows and keys: the steps of a write-up's ladder.",
  preference = -10,

  accepts = function(p) return p.dtype == "f32", "it is for f32" end,

  params = {
    { "TASK", { "call", "head", "tile" }, "what one thread does at a time: all, a head, a tile" },
    { "ROWS", { 1, 8, 32 }, "query rows of a tile, which take turns at each block of keys" },
    { "KEYS", { 64, 256, 1024 }, "keys of a block" },
    { "PAD", { 0, 1 }, "1: a first step copies K and V to rows of whole 64 bytes" },
    { "EXP", { "libm", "libmvec", "polynomial" }, "e^x: libm's, its vectors, or built in" },
    { "MATH", { "strict", "simd", "associative", "fast" }, "what may be done to the order of "
      .. "sums: nothing, -fopenmp-simd, -fassociative-math, -ffast-math" },
    { "CONTRACT", { "off", "fast" }, "products and sums may become one instruction" },
    { "MARCH", { "base", "avx2", "widest" }, "instruction set: each CPU's, AVX2, all of this" },
    { "WIDTH", { "full", "half", "quarter" }, "vectors: as wide as that has, or less" },
    { "COMPILER", { "cc", "clang" }, "compiler" },
    { "OPT", { "-O1", "-O2", "-O3" }, "optimisation level" },
  },

  core = {
    TASK = { "tile" }, ROWS = { 32 }, KEYS = { 64 }, PAD = { 0 }, EXP = { "polynomial" },
    MATH = { "fast" }, CONTRACT = { "fast" }, MARCH = { "widest" }, WIDTH = { "full" },
    COMPILER = { "cc" }, OPT = { "-O3" },
  },

  derive = function(c, p, dev)
    c.HEAD_DIM, c.HEAD_DIM_V, c.LSE = p.head_dim, p.head_dim_v, p.lse
    local set = instruction_set(c.MARCH, dev)
    c.HAS_SET, c.FLAGS = set ~= nil, set and set.flags or {}
    c.BITS = floor_div(set and set.bits or 0, PARTS[c.WIDTH])
    c.PAD_SYMBOL = "loop_forward_pad"
    -- A tile of the launch record that no head exceeds is the whole head.
    c.TASK_ROWS = c.TASK == "tile" and c.ROWS or 1 << 28
    c.PAD_ROWS = c.TASK == "tile" and 64 or 1 << 28
    c.COLUMNS = c.PAD == 1 and round_up(p.head_dim, 16) or p.head_dim
    c.COLUMNS_V = c.PAD == 1 and round_up(p.head_dim_v, 16) or p.head_dim_v
    -- The size of struct scratch, padding included.
    local row = round_up(round_up(4 * c.COLUMNS, 64) + 4 * c.COLUMNS_V + 20, 64)
    c.SCRATCH_BYTES = round_up(4 * c.KEYS + c.ROWS * row, 256)
  end,

  require = {
    { "the device has that instruction set, and it is not its widest", { "MARCH" },
      function(c) return c.HAS_SET end },
    { "vectors of that width exist", { "MARCH", "WIDTH" },
      function(c) return c.BITS >= 128 end },
    { "libmvec's exp takes -ffast-math", { "EXP", "MATH" },
      function(c) return c.EXP ~= "libmvec" or c.MATH == "fast" end },
    { "libmvec's exp takes a compiler that is not clang", { "EXP", "COMPILER" },
      function(c, p, dev)
        return c.EXP ~= "libmvec" or (c.COMPILER ~= "clang" and dev.x86_64 ~= 0)
      end },
    { "libmvec's exp takes -O3", { "EXP", "OPT" },
      function(c) return c.EXP ~= "libmvec" or c.OPT == "-O3" end },
    { "the compiler is here", { "COMPILER" },
      function(c, p, dev) return c.COMPILER == "cc" or dev[c.COMPILER] ~= 0 end },
  },

  launch = function(c)
    local attend = { symbol = "loop_forward", grid = "tiles", rows = c.TASK_ROWS,
      order = "longest_first" }
    local scratch = { bytes = c.SCRATCH_BYTES, per = "worker" }
    if c.PAD == 0 then return { attend, workspace = { scratch } } end
    return {
      { symbol = c.PAD_SYMBOL, grid = "kv_tiles", rows = c.PAD_ROWS },
      attend,
      workspace = {
        scratch,
        { bytes = 4 * c.COLUMNS, per = "key", round = 1 },
        { bytes = 4 * c.COLUMNS_V, per = "key", round = 1 },
      },
    }
  end,

  options = function(c)
    local flags = { c.OPT }
    for _, list in ipairs { MATH[c.MATH], c.FLAGS } do
      for _, flag in ipairs(list) do flags[#flags + 1] = flag end
    end
    flags[#flags + 1] = "-ffp-contract=" .. c.CONTRACT
    if #c.FLAGS > 0 then flags[#flags + 1] = "-mprefer-vector-width=" .. c.BITS end
    return { compiler = c.COMPILER, flags = flags }
  end,

  defaults = function()
    return {
      TASK = "tile", ROWS = 32, KEYS = 64, PAD = 0, EXP = "polynomial", MATH = "fast",
      CONTRACT = "fast", MARCH = "widest", WIDTH = "full", COMPILER = "cc", OPT = "-O3",
    }
  end,
}
