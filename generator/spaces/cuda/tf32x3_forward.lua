-- cuda/tf32x3_forward: float32 attention by three products of tf32, for sm_80 and up.

-- Registers of a thread: outputs and scores, and beside them what either product needs.
local function registers(c)
  local o, s = 4 * c.ROW_TILES * c.V_TILES, 4 * c.ROW_TILES * c.KEY_TILES
  local first = s + 12 * c.ROW_TILES + 24
  local second = s + floor_div(2 * s, c.PARTS) + 4 * c.ROW_TILES * c.WIDTH + 12 * c.WIDTH
  return o + math.max(first, second) + 20
end

local function smem(c)
  local pitch, pitch_v = c.DK + 4, c.DVP + 4
  return 4 * (16 * c.WARPS * c.ROW_TILES * pitch + c.STAGES * c.BLOCK_N * (pitch + pitch_v))
end

-- n-tiles of 8 columns of O; three left over are worked on as four.
local function value_tiles(p, width)
  local tiles = ceil_div(p.head_dim_v, 8)
  return width == 4 and tiles % 4 == 3 and tiles + 1 or tiles
end

local function sizes(c, p)
  c.DK, c.V_TILES = round_up(p.head_dim, 8), value_tiles(p, c.WIDTH)
  c.STEPS, c.DVP, c.KEY_TILES = floor_div(c.DK, 8), 8 * c.V_TILES, floor_div(c.BLOCK_N, 8)
end

-- Tensor cores round sums towards zero; with one pass 3 D / 8 times for a score, which is too much
-- from somewhat above 128 columns on, and sooner where the sums' logarithm is asked for.
local function is_long(p)
  return not p.tf32 and p.head_dim > (p.lse and 64 or 128)
end

return family {
  name = "tf32x3_forward", op = "forward", backend = "cuda",
  template = "cuda/tf32x3_forward.cu",
  preference = 6, -- 1.5 times simt_tiled_forward on an H200
  doc = "float32 on tensor cores: each product is three of tf32, as exact as multiply-adds; "
    .. "one for tf32.",

  accepts = function(p, dev)
    if dev.cc < 80 then return false, "it needs compute capability 8.0" end
    if p.dtype ~= "f32" then return false, "it is for f32" end
    return p.head_dim <= 256 and p.head_dim_v <= 256, "head dimensions go up to 256"
  end,

  params = {
    { "WARPS", { 2, 4, 8 }, "warps of a block" },
    { "ROW_TILES", { 1, 2 }, "tiles of 16 query rows of a warp" },
    { "BLOCK_N", { 32, 64, 96 }, "keys of a tile" },
    { "WIDTH", { 2, 4 }, "n-tiles of 8 columns of O that are worked on at a time" },
    { "STAGES", { 1, 2 }, "buffers of K and V in shared memory" },
    { "PARTS", { 1, 2, 4 }, "parts in which the weights of a tile are split and used" },
    { "PASSES", { 1, 2 },
      "over the columns of Q and K: all products at once, or those with small parts first" },
    { "UNROLL", { 1, 4, 8, 32 }, "steps of 8 columns of the scores that are unrolled; 32: all" },
    { "ORDER", { "sections", "longest_first", "row" },
      "query tiles: long ones first, of 32 MB of K and V or of all heads, or as they come" },
    { "MIN_BLOCKS", { 1, 2, 3 }, "blocks a multiprocessor that the registers must allow" },
  },

  core = {
    WARPS = { 4, 8 }, BLOCK_N = { 32, 64 },
    UNROLL = { 4, 32 }, ORDER = { "sections" }, MIN_BLOCKS = { 1, 2 },
  },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.MASKED, c.LSE, c.ALIGNED = p.mask ~= "none", p.lse, p.alignment == "a16"
    c.SINGLE = p.tf32
    sizes(c, p)
    c.SMEM = smem(c)
    c.REGISTERS = registers(c)
  end,

  require = {
    { "tiles fit in shared memory", { "WARPS", "ROW_TILES", "BLOCK_N", "WIDTH", "STAGES" },
      function(c, p, dev) return c.SMEM <= dev.smem_optin end },
    { "long sums begin with small products", { "PASSES" },
      function(c, p) return c.PASSES == 2 or not is_long(p) end },
    { "a single product takes one pass", { "PASSES" },
      function(c, p) return c.PASSES == 1 or not p.tf32 end },
    { "a part has keys for a step", { "BLOCK_N", "PARTS" },
      function(c) return c.BLOCK_N % (16 * c.PARTS) == 0 end },
    { "steps are unrolled in whole parts, or all", { "UNROLL" },
      function(c, p)
        local steps = ceil_div(p.head_dim, 8)
        return c.UNROLL == 32 or (steps > c.UNROLL and steps % c.UNROLL == 0)
      end },
    { "outputs, scores and operands fit the registers",
      { "WARPS", "ROW_TILES", "BLOCK_N", "WIDTH", "STAGES", "PARTS" },
      function(c) return c.REGISTERS <= 264 end },
    { "the blocks asked for fit a multiprocessor",
      { "WARPS", "ROW_TILES", "BLOCK_N", "WIDTH", "STAGES", "PARTS", "MIN_BLOCKS" },
      function(c, p, dev)
        return c.MIN_BLOCKS * (c.SMEM + 1024) <= dev.smem_per_sm
          and c.MIN_BLOCKS * 32 * c.WARPS * math.min(c.REGISTERS, 255) <= dev.regs_per_sm
      end },
  },

  launch = function(c)
    return {
      { rows = 16 * c.WARPS * c.ROW_TILES, grid = "tiles", threads = 32 * c.WARPS, smem = c.SMEM },
    }
  end,

  -- The largest block that fits and leaves work for half of the multiprocessors, else the smallest:
  -- warps, row tiles, keys, n-tiles at a time, parts.
  defaults = function(p, dev)
    local most = dev.cc < 90 and 240 or 252 -- registers, above which ptxas spills many
    local best
    local single = p.tf32 and p.head_dim > 64 -- 1.4 times as fast as the next, at 128
    for _, size in ipairs {
      single and { 4, 1, 64, 4, 1 } or { 4, 2, 32, 2, 2 },
      { 4, 1, 64, 4, 2 }, { 4, 1, 32, 2, 2 }, { 2, 1, 32, 2, 2 },
    } do
      local c = {
        WARPS = size[1], ROW_TILES = size[2], BLOCK_N = size[3], WIDTH = size[4], PARTS = size[5],
        STAGES = 2, PASSES = is_long(p) and 2 or 1, ORDER = "sections", MIN_BLOCKS = 1,
      }
      local full = {}
      for name, value in pairs(c) do full[name] = value end
      sizes(full, p)
      if 2 * (smem(full) + 1024) > dev.smem_per_sm then full.STAGES, c.STAGES = 1, 1 end
      local whole = full.STEPS <= 4 or full.STEPS % 4 ~= 0
      c.UNROLL = not whole and 4 or full.STEPS > 16 and 1 or 32
      local tiles = p.batch * p.heads_q * ceil_div(p.seq_q, 16 * c.WARPS * c.ROW_TILES)
      if smem(full) <= dev.smem_optin and registers(full) <= most then best = c end
      if best and 2 * tiles >= dev.sms then break end
    end
    return best
  end,
}
