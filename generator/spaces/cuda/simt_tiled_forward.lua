-- cuda/simt_tiled_forward: float32 attention by multiply-adds alone, for sm_80 and up.

local function block_rows(c)
  return c.WARPS * floor_div(32, c.LANES) * c.ROWS
end

-- Floats of shared memory: Q, then K and V, then what the warps hand over. Rows of Q and K are an
-- odd number of 16-byte pieces apart, so that eight consecutive rows lie in different banks; rows
-- of weights an odd number of LANES.
local function floats(c, p)
  local pitch = round_up(p.head_dim, 4)
  pitch = pitch % 8 == 0 and pitch + 4 or pitch
  local pitch_v = round_up(p.head_dim_v, 4 * c.LANES)
  local keys = floor_div(c.KEYS, c.PARTS)
  local pitch_p = c.LANES * (keys % 2 == 0 and keys + 1 or keys)
  local total = block_rows(c) * (pitch + pitch_p) + c.STAGES * c.LANES * c.KEYS * (pitch + pitch_v)
  return total, pitch, pitch_v, pitch_p
end

-- Registers of a thread: outputs, scores, and the operands of a step.
local function registers(c, p)
  local out = ceil_div(p.head_dim_v, 4 * c.LANES) * 4
  return c.ROWS * (out + c.KEYS) + 4 * math.max(c.KEYS, c.ROWS) + 24
end

return family {
  name = "simt_tiled_forward", op = "forward", backend = "cuda",
  template = "cuda/simt_tiled_forward.cu", preference = 5,
  doc = "float32 by multiply-adds, blocks of scores and outputs in the registers of each thread.",

  accepts = function(p, dev)
    if dev.cc < 80 then return false, "it needs compute capability 8.0" end
    if p.dtype ~= "f32" then return false, "it is for f32" end
    return p.head_dim <= 256 and p.head_dim_v <= 256, "head dimensions go up to 256"
  end,

  params = {
    { "WARPS", { 2, 4, 8 }, "warps of a block" },
    { "LANES", { 8, 16 },
      "lanes of a warp side by side along the keys; the others are along the rows" },
    { "ROWS", { 4, 8 }, "query rows of a thread" },
    { "KEYS", { 2, 4, 8 }, "keys of a thread; a tile is LANES times as many" },
    { "STAGES", { 1, 2 }, "buffers of K and V in shared memory" },
    { "PARTS", { 1, 2, 4 }, "parts in which the weights of a tile change hands" },
    { "UNROLL", { 1, 2, 4 }, "steps of four columns, or keys, that are unrolled" },
    { "AHEAD", { false, true },
      "operands of a step are loaded before it, or during the one before" },
    { "ORDER", { "sections", "longest_first", "row" },
      "query tiles: long ones first, of 32 MB of K and V or of all heads, or as they come" },
    { "MIN_BLOCKS", { 1, 2, 3 }, "blocks a multiprocessor that the registers must allow" },
  },

  core = { WARPS = { 4, 8 }, ORDER = { "sections" }, UNROLL = { 2, 4 } },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.DK = round_up(p.head_dim, 4)
    c.MASKED, c.LSE, c.ALIGNED = p.mask ~= "none", p.lse, p.alignment == "a16"
    c.REGISTERS = registers(c, p)
    local total, pitch, pitch_v, pitch_p = floats(c, p)
    c.SMEM, c.PITCH, c.PITCH_V, c.PITCH_P = 4 * total, pitch, pitch_v, pitch_p
  end,

  require = {
    { "outputs, scores and operands fit the registers", { "LANES", "ROWS", "KEYS" },
      function(c) return c.REGISTERS <= 250 end },
    { "a part has a key of each lane", { "KEYS", "PARTS" },
      function(c) return c.KEYS % c.PARTS == 0 end },
    { "tiles fit in shared memory", { "WARPS", "LANES", "ROWS", "KEYS", "STAGES", "PARTS" },
      function(c, p, dev) return c.SMEM <= dev.smem_optin end },
    { "the blocks asked for fit a multiprocessor",
      { "WARPS", "LANES", "ROWS", "KEYS", "STAGES", "PARTS", "MIN_BLOCKS" },
      function(c, p, dev)
        return c.MIN_BLOCKS * (c.SMEM + 1024) <= dev.smem_per_sm
          and c.MIN_BLOCKS * 32 * c.WARPS * (c.REGISTERS + 16) <= dev.regs_per_sm
      end },
  },

  launch = function(c)
    return { { rows = block_rows(c), grid = "tiles", threads = 32 * c.WARPS, smem = c.SMEM } }
  end,

  -- The largest block that fits and leaves work for half of the multiprocessors, else the smallest:
  -- rows of a thread, keys of a thread, warps.
  defaults = function(p, dev)
    local wide, best = p.head_dim_v > 64, nil
    for _, size in ipairs { { 8, 8, 8 }, { 8, 4, 8 }, { 8, 4, 4 }, { 4, 4, 4 }, { 4, 2, 2 } } do
      local c = {
        WARPS = size[3], LANES = wide and 16 or 8, ROWS = size[1], KEYS = size[2], STAGES = 1,
        PARTS = math.min(size[2], 4), UNROLL = 4, AHEAD = false,
        ORDER = "sections", MIN_BLOCKS = 1,
      }
      local tiles = p.batch * p.heads_q * ceil_div(p.seq_q, block_rows(c))
      if 4 * floats(c, p) <= dev.smem_optin and registers(c, p) <= 220 then best = c end
      if best and 2 * tiles >= dev.sms then break end
    end
    return best
  end,
}
