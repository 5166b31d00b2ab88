-- cuda/wgmma_forward: flash attention for Hopper (sm_90a).

return family {
  name = "wgmma_forward", op = "forward", backend = "cuda", template = "cuda/wgmma_forward.cu",
  preference = 10,
  doc = "Online softmax on Hopper's warpgroup products and bulk copies, by specialised warps.",

  accepts = function(p, dev)
    if dev.cc ~= 90 then return false, "it needs compute capability 9.0" end
    if not is_half(p.dtype) then return false, "it is for f16 and bf16" end
    if p.head_dim % 8 ~= 0 or p.head_dim_v % 8 ~= 0 then
      return false, "head dimensions must be multiples of 8"
    end
    if p.alignment ~= "a16" then return false, "bulk copies need strides of whole 16 bytes" end
    return p.head_dim <= 256 and p.head_dim_v <= 256, "head dimensions go up to 256"
  end,

  params = {
    { "CONSUMERS", { 2, 1, 3, 4 }, "computing warpgroups of a block, of 64 query rows each" },
    { "BLOCKS_PER_SM", { 1, 2, 3 }, "blocks of a multiprocessor" },
    { "PACK_GQA", { 0, 1 }, "1: a tile's rows are of up to 8 heads that share K and V" },
    { "BLOCK_N", { 32, 48, 64, 80, 96, 112, 128, 144, 160, 176 }, "keys of a tile" },
    { "STAGES", { 2, 3 }, "buffers of K, and of V" },
    { "Q_BUFFERS", { 1, 2 }, "buffers of Q" },
    { "Q_REGISTERS", { true, false }, "Q in registers, or in shared memory" },
    { "PINGPONG", { true, false }, "consumers take turns at issuing their products" },
    { "LAZY", { 8, 0 }, "rescale O only when a row's maximum has risen by 2^LAZY (0: always)" },
    { "INTEGER_MAX", { true, false }, "maxima are of the scores' bits, three at a time" },
    { "HALF", { false, true }, "a first tile of which only the first half is seen is halved" },
    { "ACROSS", { true, false }, "a job is stored while the next one begins" },
    { "SCHEDULE", { "static", "atomic" }, "blocks take tiles by turns, or from a counter" },
    { "ORDER", { "longest_first", "row" }, "the last tiles of all heads first, or head by head" },
    { "SECTION", { 0, 4, 8, 16, 32 }, "MiB of K and V whose heads share the cache; 0: all heads" },
  },

  -- Not in core, since they gave nothing or lost wherever they were measured, but for cases that
  -- the defaults name: maxima of floats, rescaling always, tiles of 32, 48, 96 and above 128 keys,
  -- sections of 4 and 16 MiB, packed heads. Not in the space: exponentials by turns of the
  -- warpgroups, or by a polynomial, sums behind the exponentials, several running maxima a row
  -- (tests/peers/performance.md).
  core = {
    PACK_GQA = { 0 }, BLOCK_N = { 64, 80, 112, 128 }, STAGES = { 2, 3 }, LAZY = { 8 },
    INTEGER_MAX = { true }, SECTION = { 0, 8, 32 },
  },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.BF16 = p.dtype == "bf16"
    c.MASKED, c.WINDOW = p.mask ~= "none", p.mask == "window"
    c.LSE = p.lse
    c.HALF_N = 16 * ceil_div(c.BLOCK_N, 32)
    -- A thread begins with these, and ptxas has no more for any one instruction (C7602). Consumers
    -- then get what the producer gives up; who asked for more than that would wait for ever.
    c.ENTRY_REGISTERS = floor_div(65536, 1024 * (c.CONSUMERS + 1) * c.BLOCKS_PER_SM) * 8
    local all = (c.CONSUMERS + 1) * c.ENTRY_REGISTERS
    c.REGISTERS = math.min(232, floor_div(all - 24, 8 * c.CONSUMERS) * 8)
    c.PRODUCER_REGISTERS = math.min(40, all - c.CONSUMERS * c.REGISTERS)
    c.PRODUCT_REGISTERS = 30 + math.max(floor_div(p.head_dim_v, 2), floor_div(c.BLOCK_N, 2))
    local chunks, v_chunks = ceil_div(p.head_dim, 64), ceil_div(p.head_dim_v, 64)
    -- scores, their 16-bit copy, and outputs, in registers of a thread
    c.TILE_REGISTERS = floor_div(3 * c.BLOCK_N, 4) + floor_div(p.head_dim_v, 2)
    local chunk = 64 * c.CONSUMERS * 128 -- bytes of a chunk of 64 columns of Q or O
    local q = c.Q_BUFFERS * chunk * chunks
    local kv = c.STAGES * c.BLOCK_N * 128 * (chunks + v_chunks)
    -- O has its own room where there is enough for at least half of its columns; else it is staged
    -- where Q was, and the next Q waits.
    local room = math.min(floor_div(233472, c.BLOCKS_PER_SM) - 1024, 232448)
    local rest = 128 + 32 * c.Q_BUFFERS
    local fit = math.min(v_chunks, floor_div(room - q - kv - rest, chunk))
    c.OVERLAY = 2 * fit < v_chunks
    c.O_CHUNKS = c.OVERLAY and v_chunks or fit
    c.SMEM = q + kv + (c.OVERLAY and 0 or c.O_CHUNKS * chunk) + rest
    c.FITS = c.SMEM <= room and (not c.OVERLAY or v_chunks <= chunks)
    c.Q_FRAGMENTS = c.Q_REGISTERS and 4 * ceil_div(p.head_dim, 16) or 0
    -- of one head, that one copy moves: heads of a pack are 8 at most
    c.Q_ROWS = (c.PACK_GQA == 1 and 8 or 64) * c.CONSUMERS
    c.O_ROWS = c.Q_ROWS % 16 == 0 and 16 or 8
  end,

  require = {
    { "several blocks of a multiprocessor have one consumer each", { "CONSUMERS", "BLOCKS_PER_SM" },
      function(c) return c.CONSUMERS == 1 or c.BLOCKS_PER_SM == 1 end },
    { "one product fits the registers a block is given at its start",
      { "CONSUMERS", "BLOCKS_PER_SM", "BLOCK_N" },
      function(c) return c.PRODUCT_REGISTERS <= c.ENTRY_REGISTERS end },
    { "tiles fit in shared memory",
      { "CONSUMERS", "BLOCKS_PER_SM", "BLOCK_N", "STAGES", "Q_BUFFERS" },
      function(c) return c.FITS end },
    { "scores and outputs fit the registers",
      { "CONSUMERS", "BLOCKS_PER_SM", "BLOCK_N", "STAGES", "Q_BUFFERS", "Q_REGISTERS" },
      function(c) return c.TILE_REGISTERS + c.Q_FRAGMENTS <= c.REGISTERS - 28 end },
    { "the next Q has no place before outputs are stored",
      { "CONSUMERS", "BLOCKS_PER_SM", "BLOCK_N", "STAGES", "Q_BUFFERS", "ACROSS" },
      function(c) return not c.ACROSS or not c.OVERLAY or c.Q_BUFFERS == 2 end },
    { "head by head there are no sections", { "ORDER", "SECTION" },
      function(c) return c.ORDER ~= "row" or c.SECTION == 0 end },
    { "taking turns needs two consumers", { "CONSUMERS", "PINGPONG" },
      function(c) return c.CONSUMERS > 1 or not c.PINGPONG end },
  },

  launch = function(c)
    local map = function(tensor, rows) return { tensor = tensor, rows = rows, rank = 4 } end
    return {
      { rows = 64 * c.CONSUMERS, grid = "persistent", blocks_per_sm = c.BLOCKS_PER_SM,
        threads = 128 * (c.CONSUMERS + 1), smem = c.SMEM },
      workspace = c.SCHEDULE == "atomic" and { { bytes = 256, per = "call" } } or nil,
      zero_bytes = c.SCHEDULE == "atomic" and 4 or nil,
      tensor_maps = {
        map("q", c.Q_ROWS), map("k", c.BLOCK_N), map("v", c.BLOCK_N), map("o", c.O_ROWS),
      },
      limits = { -- an empty tensor has no map
        { field = "batch", min = 1 }, { field = "heads_q", min = 1 }, { field = "seq_q", min = 1 },
        { field = "seq_kv", min = 1 },
      },
    }
  end,

  -- What was fastest on an H200 (tests/peers/performance.md).
  defaults = function(p, dev)
    local d = math.max(p.head_dim, p.head_dim_v)
    local masked, narrow, grouped = p.mask ~= "none", d <= 64, p.heads_q > p.heads_kv
    local function jobs(rows) return p.batch * p.heads_q * ceil_div(p.seq_q, rows) end
    local function time(rows) return rows * ceil_div(jobs(rows), dev.sms) end
    local few, many = jobs(128) <= dev.sms, jobs(128) > 4 * dev.sms
    local c = {
      CONSUMERS = 2, BLOCKS_PER_SM = 1, PACK_GQA = 0, BLOCK_N = 128, STAGES = 2, Q_BUFFERS = 1,
      Q_REGISTERS = d <= 128, PINGPONG = true, LAZY = 8, INTEGER_MAX = true, HALF = false,
      ACROSS = false, SCHEDULE = "static", ORDER = "row", SECTION = 0,
    }
    local function set(changes) for name, value in pairs(changes) do c[name] = value end end
    local function by_length(rows) -- the first row whose length is not exceeded
      for _, row in ipairs(rows) do
        if p.seq_q <= row[1] then return set(row[2]) end
      end
    end

    -- Short masked rows: the heads at work fit the cache, else every tile of queries reads K and V
    -- from memory. Jobs that are dealt by turns must be the longest first over all heads.
    if masked then
      c.ORDER = "longest_first"
      if many then
        c.SCHEDULE = "atomic"
        c.SECTION = p.seq_q <= 2048 and 8 or (p.seq_q < 8192 or grouped) and 32 or 0
      end
    elseif grouped and p.seq_q >= 4096 then
      set { ORDER = "longest_first", SECTION = 8 }
    end

    -- Few queries: those of a group's heads fill a tile, and K and V are read once for all of them.
    if p.seq_q <= 64 then c.PACK_GQA = 1 end

    -- Long rows: three consumers, since more rows share what is read of K and V; but not where
    -- tiles of more rows leave multiprocessors without work at the end, nor for windows, of which
    -- they would read more than they see.
    local large = narrow or p.seq_q >= (masked and 8192 or 2048)
    if masked then
      large = large and many and p.mask ~= "window"
    else
      large = large and time(192) < (narrow and 1.14 or 1.04) * time(128)
    end
    if d > 128 then
      c.BLOCK_N = d <= 192 and 96 or 64
      if masked and many and d > 192 then
        by_length {
          { 512, { PINGPONG = false, SECTION = 32 } },
          { 2048, { SCHEDULE = "static", SECTION = 4 } },
          { math.huge, { SCHEDULE = "static", PINGPONG = false, HALF = true } },
        }
      end
    elseif few then
      set { CONSUMERS = 1, BLOCKS_PER_SM = 2, BLOCK_N = 64, PINGPONG = false }
    elseif narrow and masked and p.seq_q <= (large and 512 or 2048) then
      -- others hide one's beginning and end
      set { CONSUMERS = 1, BLOCKS_PER_SM = 3, BLOCK_N = 64, STAGES = 3, PINGPONG = false }
    elseif large and narrow then -- consumers wait more than they compute
      set { CONSUMERS = 3, Q_BUFFERS = 2, Q_REGISTERS = false, PINGPONG = masked }
      if masked then
        set { STAGES = 3, HALF = true, ACROSS = true, SECTION = 32 }
        by_length { { 2048, { SCHEDULE = "static" } }, { math.huge, { BLOCK_N = 112 } } }
      else
        by_length { { 2048, { CONSUMERS = 4, BLOCK_N = 64 } } }
      end
    elseif large then
      set { CONSUMERS = 3, Q_REGISTERS = false }
      c.BLOCK_N = d <= 96 and 112 or d <= 112 and 96 or 80
      if d > 112 then
        set { STAGES = 3, Q_BUFFERS = 2, PINGPONG = false, HALF = true, ACROSS = true }
        if not masked then
          set { ORDER = "longest_first", SECTION = 8 }
        elseif grouped then
          c.ACROSS = false
        else
          c.SCHEDULE = "static"
        end
      end
    elseif masked and d > 112 then
      c.PINGPONG = false
      if many then
        by_length {
          { 512, { BLOCK_N = 64, STAGES = 3, Q_BUFFERS = 2 } },
          { 2048, { Q_BUFFERS = 2, Q_REGISTERS = false, SECTION = 32 } },
          { 8192, { PINGPONG = true, HALF = true, ACROSS = true } },
        }
        if grouped and p.seq_q <= 2048 then
          set { CONSUMERS = 3, BLOCK_N = 64, STAGES = 3, ACROSS = true }
        end
      else
        set { Q_BUFFERS = 2 }
        by_length { { 1024, { BLOCK_N = 64 } }, { 2048, { HALF = true } } }
      end
    end
    return c
  end,
}
