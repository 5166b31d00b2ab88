-- cpu/amx_forward: bf16 attention of many query rows on AMX tiles.

-- Rows of a group, and keys of a task that packs: see the template.
local ROWS, PACK_ROWS = 32, 64

-- Groups of a task, and who packs K and V: many groups, for fewer passes over K and V, which come
-- from L2 or beyond, and so that a block is not packed by many tasks; but each thread must get four
-- tasks, or eight where all threads pack first, as for long heads, and where tasks would be small.
local function dealing(p, dev)
  local function enough(count, each)
    return p.batch * ceil_div(p.heads_q * p.seq_q, count * ROWS) >= each * dev.threads
  end
  for _, count in ipairs { 16, 8, 4 } do
    if p.seq_kv <= 2048 and enough(count, 4) then return count, "block" end
  end
  for _, count in ipairs { 16, 8, 4, 2 } do
    if enough(count, 8) then return count, "head" end
  end
  return 1, "head"
end

return family {
  name = "amx_forward", op = "forward", backend = "cpu", template = "cpu/amx_forward.c",
  doc = "Online-softmax attention for bf16 on AMX tiles: 32 query rows a group, packed K and V.",
  preference = 5, -- before simd_forward, which widens bf16 and computes in f32

  accepts = function(p, dev)
    if p.dtype ~= "bf16" then
      return false, "it is for bf16 (tiles of f16 would need AMX-FP16)"
    elseif dev.amx_bf16 == 0 or dev.avx512_bf16 == 0 then
      return false, "it needs amx_bf16 and avx512_bf16: a CPU that has them, and a kernel that "
        .. "permits this process to use tiles"
    end
    return true
  end,

  params = {
    { "BLOCK_K", { 64, 128, 256, 512, 1024 }, "keys of a block, between loads and stores of O" },
    { "GROUPS", { 1, 2, 4, 8, 16 }, "groups of a task, which share each block of K and V" },
    { "EXP_DEGREE", { 3, 4, 5 }, "degree of the polynomial for 2^x" },
    { "LOAD_KV", { "keep", "stream" }, "tiles of K and V are to stay in the first cache, or not" },
    { "PACK_KV", { "head", "block" }, "a first step packs whole heads; or a task each block" },
    { "PACK_GQA", { 0, 1 }, "1: the heads that share K and V are rows of one task" },
    { "ORDER", { "longest_first", "row" }, "order in which tasks are dealt" },
    { "COMPILER", { "cc", "clang" }, "compiler" },
    { "OPT", { "-O2", "-O3" }, "optimisation level" },
  },

  core = {
    EXP_DEGREE = { 3, 4 }, PACK_GQA = { 1 }, ORDER = { "longest_first" },
    COMPILER = { "cc" }, OPT = { "-O3" },
  },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.LSE = p.lse
    c.TILES, c.TILES_V = ceil_div(p.head_dim, 32), ceil_div(p.head_dim_v, 16)
    c.TILES_O = round_up(c.TILES_V, 2)
    c.PACK_SYMBOL, c.PACK_ROWS = "amx_forward_pack", PACK_ROWS
    c.OWN = c.PACK_KV == "block"
    c.LOAD = c.LOAD_KV == "keep" and "ATTN_TILE_LOAD" or "ATTN_TILE_STREAM"

    -- The size of struct scratch, padding included.
    local group = 64 * ROWS * (c.TILES + c.TILES_O + 2) + 20 * ROWS + 64
    local weights = 2 * ROWS * c.BLOCK_K
    c.SCRATCH_BYTES = round_up(256 * ROWS + weights + c.GROUPS * group, 256)
  end,

  require = {
    { "the compiler is here", { "COMPILER" },
      function(c, _, dev) return c.COMPILER == "cc" or dev[c.COMPILER] ~= 0 end },
    { "the log-sum-exp needs degree 4 or more", { "EXP_DEGREE" },
      function(c, p) return c.EXP_DEGREE > 3 or not p.lse end },
  },

  launch = function(c)
    local pack = { symbol = c.PACK_SYMBOL, grid = "kv_tiles", rows = PACK_ROWS }
    local attend = { symbol = "amx_forward", grid = "tiles", rows = c.GROUPS * ROWS,
      order = c.ORDER, packed = c.PACK_GQA == 1 }
    local steps, per, keys = { pack, attend }, "key", 1
    if c.OWN then steps, per, keys = { attend }, "worker", c.BLOCK_K end
    steps.workspace = {
      { bytes = c.SCRATCH_BYTES, per = "worker" },
      { bytes = keys * 2 * 32 * c.TILES, per = per, round = PACK_ROWS },
      { bytes = keys * 2 * 16 * c.TILES_V, per = per, round = PACK_ROWS },
    }
    return steps
  end,

  options = function(c)
    return { compiler = c.COMPILER, flags = {
      c.OPT, "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-mavx512f",
      "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512bf16", "-mfma", "-mf16c", "-mamx-tile",
      "-mamx-bf16",
    } }
  end,

  defaults = function(p, dev)
    local groups, pack = dealing(p, dev)
    return {
      BLOCK_K = 512, GROUPS = groups, EXP_DEGREE = p.lse and 4 or 3,
      LOAD_KV = "stream", PACK_KV = pack, PACK_GQA = 1,
      ORDER = "longest_first", COMPILER = "cc", OPT = "-O3",
    }
  end,
}
