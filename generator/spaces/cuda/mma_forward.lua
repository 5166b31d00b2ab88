-- cuda/mma_forward: flash attention on mma.sync tensor cores, for sm_80 and up.

return family {
  name = "mma_forward", op = "forward", backend = "cuda", template = "cuda/mma_forward.cu",
  preference = 1, -- before a new family, which has 0
  doc = "Online-softmax attention on mma.sync tensor cores; one query tile a block.",

  accepts = function(p, dev)
    if dev.cc < 80 then return false, "it needs compute capability 8.0" end
    if not is_half(p.dtype) then return false, "it is for f16 and bf16" end
    if p.head_dim % 8 ~= 0 or p.head_dim_v % 8 ~= 0 then
      return false, "head dimensions must be multiples of 8"
    end
    return p.head_dim <= 256 and p.head_dim_v <= 256, "head dimensions go up to 256"
  end,

  params = {
    { "BLOCK_M", { 16, 32, 64, 128, 256 }, "query rows of a block" },
    { "WARPS", { 1, 2, 4, 8 }, "warps along the rows of a block; each owns 16 or 32 query rows" },
    { "KEY_WARPS", { 1, 2, 4 }, "warps along the keys: so many share each row and each tile" },
    { "BLOCK_N", { 16, 32, 48, 64, 96, 128 }, "keys of a tile" },
    { "STAGES", { 1, 2, 3 }, "buffers of K and V in shared memory" },
    { "Q_REGISTERS", { true, false }, "keep Q in registers, or read it for each tile of keys" },
    { "SWIZZLE", { true, false }, "permute the 16-byte pieces of a row against bank conflicts" },
    { "PAD", { 0, 8, 16 }, "elements behind each row in shared memory, against bank conflicts" },
    { "COPY", { "async", "plain" }, "cp.async, or loads and stores" },
    { "EXP", { "exp2", "expf" }, "2^x with log2(e) folded into the scale, or expf" },
    { "REDUCE", { "shuffle", "shared" }, "a row's maximum by warp shuffles or shared memory" },
    { "STORE", { "paired", "staged", "scalar" },
      "16-bit outputs in pairs, in eights by way of shared memory, or one by one" },
    { "ORDER", { "longest_first", "sections", "row" },
      "query tiles: long ones first, of all heads or of 32 MB of K and V, or as they come" },
    { "LAZY", { 0, 4, 8 }, "rescale when a row's maximum grew by more than this, in the exponent" },
    { "MIN_BLOCKS", { 1, 2, 3, 4 }, "blocks a multiprocessor that the registers must allow" },
  },

  core = {
    BLOCK_M = { 32, 64, 128 }, WARPS = { 2, 4, 8 }, KEY_WARPS = { 1 },
    BLOCK_N = { 32, 64, 128 }, PAD = { 0, 8 }, COPY = { "async", "plain" }, EXP = { "exp2" },
    REDUCE = { "shuffle" }, STORE = { "paired", "staged", "scalar" }, ORDER = { "sections" },
    LAZY = { 8 }, MIN_BLOCKS = { 1, 2 },
  },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.DK, c.DVP = round_up(p.head_dim, 16), round_up(p.head_dim_v, 16)
    c.BF16 = p.dtype == "bf16"
    c.MASKED = p.mask ~= "none"
    c.LSE = p.lse
    c.ALIGNED = p.alignment == "a16"
    c.ROW_TILES = floor_div(c.BLOCK_M, 16 * c.WARPS)
    -- 32-bit registers of a thread that hold O, and S with the operand made from it
    c.ACCUMULATORS = c.ROW_TILES * floor_div(c.HEAD_DIM_V, 2)
    c.SCORES = c.ROW_TILES * floor_div(c.BLOCK_N, 2 * c.KEY_WARPS)
    c.Q_FRAGMENTS = c.Q_REGISTERS and c.ROW_TILES * floor_div(c.DK, 4) or 0
    local pitch_k, pitch_v = 2 * (c.DK + c.PAD), 2 * (c.DVP + c.PAD)
    c.TILE_BYTES = c.BLOCK_M * pitch_k + c.STAGES * c.BLOCK_N * (pitch_k + pitch_v)
    -- warps that share rows leave their outputs, maxima and sums where tiles were
    local state = c.ROW_TILES * 256 * (floor_div(c.HEAD_DIM_V, 4) + 2)
    local merge = floor_div(c.KEY_WARPS, 2) * c.WARPS * state
    c.SMEM = math.max(c.TILE_BYTES + (c.REDUCE == "shared" and 16 * c.BLOCK_M or 0), merge)
  end,

  require = {
    { "each warp owns 16 or 32 rows", { "BLOCK_M", "WARPS" },
      function(c) return c.BLOCK_M == 16 * c.WARPS or c.BLOCK_M == 32 * c.WARPS end },
    { "warps along the keys have 16 keys or more", { "BLOCK_N", "KEY_WARPS" },
      function(c) return c.BLOCK_N % (16 * c.KEY_WARPS) == 0 end },
    { "a block has at most 16 warps", { "WARPS", "KEY_WARPS" },
      function(c) return c.WARPS * c.KEY_WARPS <= 16 end },
    { "rows that warps share have no place to reduce in", { "KEY_WARPS", "REDUCE" },
      function(c) return c.KEY_WARPS == 1 or c.REDUCE == "shuffle" end },
    { "outputs and scores fit the registers", { "BLOCK_M", "WARPS", "KEY_WARPS", "BLOCK_N" },
      function(c) return c.ACCUMULATORS + c.SCORES <= 208 end },
    { "Q does not fit the registers beside them",
      { "BLOCK_M", "WARPS", "KEY_WARPS", "BLOCK_N", "Q_REGISTERS" },
      function(c) return c.ACCUMULATORS + c.SCORES + c.Q_FRAGMENTS <= 216 end },
    { "the permutation is of rows of 64 columns", { "SWIZZLE" },
      function(c, p)
        return not c.SWIZZLE or (p.head_dim % 64 == 0 and p.head_dim_v % 64 == 0)
      end },
    { "rows are permuted or padded, not both", { "SWIZZLE", "PAD" },
      function(c) return not c.SWIZZLE or c.PAD == 0 end },
    { "cp.async needs 16-byte rows", { "COPY" },
      function(c, p) return p.alignment == "a16" or c.COPY == "plain" end },
    { "pairs need 4-byte rows", { "STORE" },
      function(c, p) return p.alignment == "a16" or c.STORE == "scalar" end },
    { "staged outputs lie where Q was", { "STORE" },
      function(c, p) return c.STORE ~= "staged" or p.head_dim_v <= p.head_dim end },
    { "only copies in the background use several buffers", { "STAGES", "COPY" },
      function(c) return c.COPY == "async" or c.STAGES <= 2 end },
    { "tiles fit in shared memory",
      { "BLOCK_M", "WARPS", "KEY_WARPS", "BLOCK_N", "STAGES", "Q_REGISTERS", "PAD", "REDUCE" },
      function(c, p, dev) return c.SMEM <= dev.smem_optin end },
    { "the blocks asked for fit a multiprocessor",
      { "BLOCK_M", "WARPS", "KEY_WARPS", "BLOCK_N", "STAGES", "Q_REGISTERS", "PAD", "REDUCE",
        "MIN_BLOCKS" },
      function(c, p, dev)
        local threads = 32 * c.WARPS * c.KEY_WARPS
        local registers = c.ACCUMULATORS + c.SCORES + c.Q_FRAGMENTS + 24
        return c.MIN_BLOCKS * (c.SMEM + 1024) <= dev.smem_per_sm
          and c.MIN_BLOCKS * threads * registers <= dev.regs_per_sm
          and c.MIN_BLOCKS * threads <= dev.threads_per_sm
      end },
  },

  launch = function(c)
    return {
      { rows = c.BLOCK_M, grid = "tiles", threads = 32 * c.WARPS * c.KEY_WARPS, smem = c.SMEM },
    }
  end,

  defaults = function(p, dev)
    local aligned, widest = p.alignment == "a16", math.max(p.head_dim, p.head_dim_v)
    local swizzle = p.head_dim % 64 == 0 and p.head_dim_v % 64 == 0
    local masked = p.mask ~= "none"
    local rows, keys = widest > 128 and 64 or 128, widest <= 64 and 128 or 64
    local pad = swizzle and 0 or 8
    -- Few tiles do not fill the card: smaller ones, with warps along the keys. Measured at 128.
    local tiles = p.batch * p.heads_q * ceil_div(p.seq_q, rows)
    if tiles < dev.sms and p.head_dim == 128 and p.head_dim_v == 128 and aligned then
      local one = p.seq_q <= 16
      return {
        BLOCK_M = one and 16 or 32, WARPS = one and 1 or 2, KEY_WARPS = one and 4 or 2,
        BLOCK_N = one and 128 or 64, STAGES = one and 1 or 2, Q_REGISTERS = true,
        SWIZZLE = swizzle, PAD = pad, COPY = "async", EXP = "exp2", REDUCE = "shuffle",
        STORE = "paired", ORDER = "sections", LAZY = 8, MIN_BLOCKS = 1,
      }
    end
    local pitch = 2 * (round_up(p.head_dim, 16) + pad)
    local pitch_v = 2 * (round_up(p.head_dim_v, 16) + pad)
    local twice = aligned and widest <= 128
      and rows * pitch + 2 * keys * (pitch + pitch_v) <= dev.smem_optin
    local wide = widest > 64 and p.head_dim_v <= p.head_dim -- O has a place where Q was
    local c = {
      BLOCK_M = rows, WARPS = 4, KEY_WARPS = 1, BLOCK_N = keys, STAGES = twice and 2 or 1,
      Q_REGISTERS = false, SWIZZLE = swizzle, PAD = pad,
      COPY = aligned and "async" or "plain", EXP = "exp2", REDUCE = "shuffle",
      STORE = not aligned and "scalar" or wide and "staged" or "paired",
      ORDER = masked and "sections" or "row", LAZY = 8, MIN_BLOCKS = 1,
    }
    -- Masked rows of 64 columns: the shorter they are, the finer the tiles; several blocks a
    -- multiprocessor, if they fit.
    if masked and aligned and p.head_dim == 64 and p.head_dim_v == 64 then
      local better = {
        BLOCK_N = 96, STAGES = 3, Q_REGISTERS = true, STORE = "staged", MIN_BLOCKS = 2,
      }
      if p.seq_q <= 512 then
        better.BLOCK_M, better.WARPS, better.BLOCK_N, better.ORDER = 64, 2, 64, "longest_first"
      elseif p.seq_q <= 1024 then
        better = { BLOCK_N = 64, Q_REGISTERS = true }
      end
      local tiles_of = (better.BLOCK_M or rows) + 2 * (better.STAGES or 2) * better.BLOCK_N
      local smem = tiles_of * pitch
      if smem <= dev.smem_optin and (better.MIN_BLOCKS or 1) * (smem + 1024) <= dev.smem_per_sm then
        for name, value in pairs(better) do c[name] = value end
      end
    end
    return c
  end,
}
