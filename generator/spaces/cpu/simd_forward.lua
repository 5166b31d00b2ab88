-- cpu/simd_forward: attention in f32 with query rows in the lanes of SIMD registers.

-- The vectors of each step in which a block's keys are gone through: see the template's find_edges.
local function steps(mask, vectors)
  local list = {}
  if mask == "window" then
    for to = 1, vectors - 1 do list[#list + 1] = { from = 0, to = to } end
  end
  for from = 0, mask == "none" and 0 or vectors - 1 do
    list[#list + 1] = { from = from, to = vectors }
  end
  return list
end

-- Groups by their vectors of query rows, by registers: the register tile that suits each, and what
-- one thread reaches with it, as a share of the first's (measured on x86).
local TILES = {
  [32] = { { vectors = 4, tile = 6, rate = 1 }, { vectors = 2, tile = 8, rate = 0.97 },
    { vectors = 1, tile = 8, rate = 0.8 } },
  [16] = { { vectors = 3, tile = 4, rate = 1 }, { vectors = 2, tile = 6, rate = 0.99 },
    { vectors = 1, tile = 8, rate = 0.82 } },
}

-- Tasks of so many rows.
local function tasks(p, rows)
  return p.batch * p.heads_kv * ceil_div(p.rows, rows)
end

-- The largest, or, where a thread would get fewer than eight tasks, that which ends first if all
-- tasks take equally long.
local function pick_tile(p, dev, set)
  local best, least
  for _, t in ipairs(TILES[set.registers]) do
    local count = tasks(p, t.vectors * set.full)
    if not best and count >= 8 * dev.threads then return t end
    local time = ceil_div(count, dev.threads) * t.vectors / t.rate
    if not best or time < least then best, least = t, time end
  end
  return best
end

-- Groups of a task: many, for fewer passes over K and V, while each thread still gets eight tasks.
local function groups(p, dev, rows)
  for _, count in ipairs { 4, 2 } do
    if tasks(p, count * rows) >= 8 * dev.threads then return count end
  end
  return 1
end

-- Accumulators, the vectors of a row, and one element of K or V must all stay in registers.
local function fits(c, rows)
  return (rows + 1) * c.NV + 1 <= c.REGISTERS
end

return family {
  name = "simd_forward", op = "forward", backend = "cpu", template = "cpu/simd_forward.c",
  preference = 1, -- before a new family, which has 0
  doc = "Online-softmax attention on transposed tiles: query rows are the lanes of SIMD registers.",

  accepts = function() return true end,

  params = {
    { "VECTOR", { "full", "half" }, "width of a vector: the instruction set's, or half of it" },
    { "NV", { 1, 2, 3, 4 }, "vectors of query rows in a group" },
    { "MR", { 4, 6, 8, 12 }, "keys of a score tile" },
    { "MRV", { 4, 6, 8, 12 }, "columns of an output tile" },
    { "BLOCK_K", { 32, 48, 96, 192, 384 }, "keys of a block, rounded up to score tiles" },
    { "GROUPS", { 1, 2, 4 }, "groups of a task, which share each block of K and V" },
    { "PACK_GQA", { 0, 1 }, "1: the heads that share K and V are rows of one task" },
    { "PACK_KV", { 0, 1 }, "1: a first step copies K and V to contiguous rows of f32" },
    { "PREFETCH_V", { 0, 1 }, "1: fetch rows of V while the scores of their keys are computed" },
    { "EXP", { "native", "magic" }, "2^x by the instruction set, or by adding 1.5 2^23" },
    { "EXP_DEGREE", { 4, 5, 6 }, "degree of the polynomial for 2^x" },
    { "UNROLL", { 1, 2, 4 }, "turns of the inner loops unrolled" },
    { "ORDER", { "longest_first", "row" }, "order in which tasks are dealt" },
    { "COMPILER", { "cc", "clang" }, "compiler" },
    { "OPT", { "-O2", "-O3" }, "optimisation level" },
  },

  core = {
    VECTOR = { "full" }, MRV = { 4, 6, 8 }, BLOCK_K = { 48, 96 }, GROUPS = { 1, 4 },
    PACK_GQA = { 1 }, PREFETCH_V = { 1 }, EXP = { "native" }, EXP_DEGREE = { 5 },
    UNROLL = { 4 }, ORDER = { "longest_first" }, COMPILER = { "cc" }, OPT = { "-O3" },
  },

  derive = function(c, p, dev)
    local set = vector_sets(dev)[1]
    c.SET, c.REGISTERS, c.FLAGS = set.name, set.registers, set.flags
    c.DTYPE, c.ELEMENT = p.dtype, p.dtype == "f32" and "float" or "uint16_t"
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.WIDE = p.dtype == "f32" and 0 or round_up(math.max(p.head_dim, p.head_dim_v), 16)
    c.MASKED = p.mask == "none" and 0 or 1
    c.LSE = p.lse
    c.VL = c.VECTOR == "full" and set.full or set.half
    c.STEPS = steps(p.mask, c.NV)
    c.STEP_COUNT = #c.STEPS
    c.BK = round_up(c.BLOCK_K, c.MR)
    c.PACK_SYMBOL, c.PACK_ROWS = "simd_forward_pack", 64

    local tiles, rest = {}, p.head_dim_v % c.MRV -- widths of output tile that the template needs
    if c.MRV <= p.head_dim_v then tiles[#tiles + 1] = c.MRV end
    if rest > 0 then tiles[#tiles + 1] = rest end
    c.OUTPUT_TILES = tiles

    -- The size of struct scratch, padding included.
    local lanes, columns = c.NV * c.VL, p.head_dim + p.head_dim_v
    local floats = c.BK * lanes + 4 * c.WIDE + c.GROUPS * ((columns + 4) * lanes + 32)
    c.SCRATCH_BYTES = round_up(4 * floats, 256)
  end,

  require = {
    { "vectors of that width exist", { "VECTOR" },
      function(c) return c.VL > 0 end },
    { "a score tile fits the registers", { "NV", "MR" },
      function(c) return fits(c, c.MR) end },
    { "an output tile fits the registers", { "NV", "MRV" },
      function(c) return fits(c, c.MRV) end },
    { "an output tile is no wider than V", { "MRV" },
      function(c, p) return c.MRV <= p.head_dim_v or c.MRV == 4 end },
    { "16-bit rows are packed as f32", { "PACK_KV" },
      function(c, p) return c.PACK_KV == 1 or p.dtype == "f32" end },
    { "the magic 2^x is not the native one", { "EXP" },
      function(c) return c.EXP == "native" or c.SET == "avx512" end },
    { "the compiler is here", { "COMPILER" },
      function(c, _, dev) return c.COMPILER == "cc" or dev[c.COMPILER] ~= 0 end },
    { "the log-sum-exp needs degree 5 or more", { "EXP_DEGREE" },
      function(c, p) return c.EXP_DEGREE > 4 or not p.lse end },
  },

  launch = function(c)
    local attend = { symbol = "simd_forward", grid = "tiles", rows = c.GROUPS * c.NV * c.VL,
      order = c.ORDER, packed = c.PACK_GQA == 1 }
    local scratch = { bytes = c.SCRATCH_BYTES, per = "worker" }
    if c.PACK_KV == 0 then return { attend, workspace = { scratch } } end
    return {
      { symbol = c.PACK_SYMBOL, grid = "kv_tiles", rows = c.PACK_ROWS },
      attend,
      workspace = {
        scratch,
        { bytes = 4 * c.HEAD_DIM, per = "key", round = 1 },
        { bytes = 4 * c.HEAD_DIM_V, per = "key", round = 1 },
      },
    }
  end,

  options = function(c)
    local flags = { c.OPT, "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math" }
    for _, flag in ipairs(c.FLAGS) do flags[#flags + 1] = flag end
    return { compiler = c.COMPILER, flags = flags }
  end,

  defaults = function(p, dev)
    local set = vector_sets(dev)[1]
    local t = pick_tile(p, dev, set)
    return {
      VECTOR = "full", NV = t.vectors, MR = t.tile,
      MRV = p.head_dim_v >= t.tile and t.tile or 4, BLOCK_K = 96,
      GROUPS = groups(p, dev, t.vectors * set.full),
      PACK_GQA = 1, PACK_KV = p.dtype == "f32" and 0 or 1, PREFETCH_V = 1,
      EXP = "native", EXP_DEGREE = 5, UNROLL = 4, ORDER = "longest_first", COMPILER = "cc",
      OPT = "-O3",
    }
  end,
}
