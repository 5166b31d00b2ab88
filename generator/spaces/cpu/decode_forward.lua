-- cpu/decode_forward: attention of few query rows, as fast as K and V can be read.

-- What reading rows of 16-bit elements takes beyond the flags of an instruction set.
local ROW_FLAGS = { avx512 = { "-mavx512bw", "-mf16c" }, avx2 = { "-mf16c" }, base = {} }

-- Numbers of rows that meet the keys at once: the most, and what is left of it.
local function row_tiles(rows)
  local list = {}
  while rows > 0 do
    list[#list + 1] = rows
    rows = floor_div(rows, 2)
  end
  return list
end

-- The columns of V in tiles of about equal width, each of `rows` rows and at most `most` registers:
-- `per` of them hold a chunk of a row, `chunk` columns. The last tile is listed apart where it is
-- narrower, or its last chunk not whole.
local function output_tiles(rows, columns, chunk, per, most)
  local chunks = ceil_div(columns, chunk)
  local tiles = ceil_div(chunks, math.max(1, floor_div(most, rows * per)))
  local width = ceil_div(chunks, tiles)
  local last, rest = chunks - (tiles - 1) * width, columns - (chunks - 1) * chunk
  local list = {}
  local function add(from, to, chunks_of_one, columns_of_last)
    if from < to then
      list[#list + 1] = { name = rows .. "_" .. #list + 1, from = from * per, to = to * per,
        vectors = chunks_of_one * per, columns = columns_of_last }
    end
  end
  local alike = (last == width and rest == chunk) and tiles or tiles - 1
  add(0, alike * width, width, chunk)
  add(alike * width, chunks, last, rest)
  return list
end

-- Rows of a task: all that the limits admit.
local TASK_ROWS = 32

return family {
  name = "decode_forward", op = "forward", backend = "cpu", template = "cpu/decode_forward.c",
  doc = "Few query rows over many keys: read K and V once, on all cores; lanes are columns.",
  preference = 10,

  accepts = function() return true end,

  params = {
    { "VECTOR", { "full", "half" }, "width of a vector: the instruction set's, or half of it" },
    { "ROWS", { 1, 2, 4, 8 }, "rows that meet the keys at once" },
    { "TILE", { 8, 16 }, "scores of a tile, each in a register until its lanes are summed" },
    { "OUT", { 8, 16, 24 }, "registers of an output tile" },
    { "BLOCK_K", { 16, 32, 64, 128, 256 }, "keys of a block" },
    { "SPLITS", { 1, 2, 4, 8, 16, 32, 64 }, "pieces into which the keys of a head are cut" },
    { "PREFETCH", { "none", "l1", "l2" }, "fetch V while its scores are computed, K of the next "
      .. "block while outputs are, into that cache" },
    { "KEYS", { "near", "apart" }, "keys of a tile: neighbours, or as far apart as the block "
      .. "is long" },
    { "DEAL", { "dynamic", "static" }, "how pieces are dealt to threads" },
    { "COMPILER", { "cc", "clang" }, "compiler" },
    { "OPT", { "-O2", "-O3" }, "optimisation level" },
  },

  core = {
    VECTOR = { "full" }, ROWS = { 4, 8 }, OUT = { 16 }, BLOCK_K = { 16, 32, 64 },
    PREFETCH = { "l1", "l2" }, DEAL = { "dynamic" }, COMPILER = { "cc" }, OPT = { "-O3" },
  },

  derive = function(c, p, dev)
    local set = vector_sets(dev)[1]
    c.REGISTERS, c.FLAGS = set.registers, { set.flags, ROW_FLAGS[set.name] }
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.LSE = p.lse
    c.ELEM = p.dtype == "f32" and "float" or "uint16_t"
    c.PER = p.dtype == "bf16" and 2 or 1
    c.TASK_ROWS, c.MERGE_ROWS, c.MERGE_SYMBOL = TASK_ROWS, 4, "decode_forward_merge"
    c.VL = c.VECTOR == "full" and set.full or set.half
    local chunk = c.PER * math.max(1, c.VL)
    c.CHUNKS = ceil_div(p.head_dim, chunk)
    c.CHUNKS_V = ceil_div(p.head_dim_v, chunk)
    c.APART = c.KEYS == "apart"
    c.FETCHES = c.PREFETCH ~= "none"
    c.LOCALITY = c.PREFETCH == "l2" and 2 or 3
    c.ROW_TILES = row_tiles(c.ROWS)
    c.GROUPS = floor_div(TASK_ROWS, c.ROWS) + #c.ROW_TILES - 1

    local outputs = {}
    for _, rows in ipairs(c.ROW_TILES) do
      outputs[rows] = output_tiles(rows, p.head_dim_v, chunk, c.PER, c.OUT)
    end
    c.OUTPUT_TILES = outputs

    -- The sizes of struct part and struct scratch, padding included.
    c.PART_BYTES = round_up(4 * (c.CHUNKS_V * c.PER * c.VL + 2), 64)
    local rows = round_up(4 * (c.ROWS * c.CHUNKS * c.PER * c.VL + 4 * c.TILE + 4) + 8, 64)
    c.SCRATCH_BYTES = round_up(4 * c.BLOCK_K * c.ROWS + c.GROUPS * rows, 256)
  end,

  require = {
    { "vectors of that width exist", { "VECTOR" },
      function(c) return c.VL > 0 end },
    { "a tile fills whole vectors", { "VECTOR", "TILE" },
      function(c) return c.TILE % c.VL == 0 end },
    { "a tile fits the registers", { "TILE" },
      function(c) return c.TILE + c.PER + 1 <= c.REGISTERS end },
    { "an output tile fits the registers", { "ROWS", "OUT" },
      function(c) return c.OUT + c.PER + math.min(c.ROWS, 4) <= c.REGISTERS end },
    { "an output tile holds a chunk of each row", { "ROWS", "OUT" },
      function(c) return floor_div(c.OUT, c.ROWS) >= c.PER end },
    { "the compiler is here", { "COMPILER" },
      function(c, _, dev) return c.COMPILER == "cc" or dev[c.COMPILER] ~= 0 end },
  },

  launch = function(c)
    local record = {
      { symbol = "decode_forward", grid = "split", rows = c.TASK_ROWS, packed = true,
        deal = c.DEAL },
      splits = c.SPLITS,
      workspace = {
        { bytes = c.SCRATCH_BYTES, per = "worker" },
        { bytes = c.PART_BYTES, per = "row" },
      },
      limits = { { field = "rows", min = 0, max = c.TASK_ROWS } },
    }
    if c.SPLITS > 1 then
      record[2] = { symbol = c.MERGE_SYMBOL, grid = "tiles", rows = c.MERGE_ROWS, packed = true }
    end
    return record
  end,

  options = function(c)
    local flags = { c.OPT, "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math" }
    for _, list in ipairs(c.FLAGS) do
      for _, flag in ipairs(list) do flags[#flags + 1] = flag end
    end
    return { compiler = c.COMPILER, flags = flags }
  end,

  -- Some 128 pieces in all keep many cores busy to the end, and cost little if they are not short.
  defaults = function(p, dev)
    local pieces, heads = 1, math.max(1, p.batch * p.heads_kv)
    while pieces < 64 and pieces * heads < 128 and pieces * 256 <= p.seq_kv do
      pieces = 2 * pieces
    end
    local many = vector_sets(dev)[1].registers == 32
    return {
      VECTOR = "full", ROWS = many and p.rows >= 8 and 8 or 4, TILE = many and 16 or 8,
      OUT = many and 16 or 8, BLOCK_K = 32, SPLITS = pieces, PREFETCH = "l1", KEYS = "apart",
      DEAL = "dynamic", COMPILER = "cc", OPT = "-O3",
    }
  end,
}
