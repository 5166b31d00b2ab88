-- cuda/simt_forward: float32 attention a query row at a time, for sm_80 and up: the CUDA ladder of
-- a write-up, whose versions are these configurations (each changes the one before):
--
--   v0    one thread a row             DOT=thread WARPS=4 SOFTMAX=two_pass Q=memory OUT=memory
--                                      VECTOR=1 KEYS=1 TILE=0
--   v1    a warp a row, shuffle-down   DOT=down WARPS=1
--   v2    XOR, 8 warps a block         DOT=xor WARPS=8
--   v3    online softmax               SOFTMAX=online
--   v4    Q and O in registers         Q=registers OUT=registers
--   v4.5  loads of four floats         VECTOR=4
--   v4.6  two keys at once             KEYS=2
--   v5    tiles of K and V             TILE=32
--   v6    better tiles                 WARPS=16 KEYS=4 TILE=64

-- Floats of a row that one thread holds.
local function held(c, p)
  local lanes = c.DOT == "thread" and 1 or 32
  local function columns(n) return ceil_div(n, lanes * c.VECTOR) * c.VECTOR end
  return (c.Q == "registers" and columns(p.head_dim) or 0)
    + (c.OUT == "registers" and columns(p.head_dim_v) or 0)
end

return family {
  name = "simt_forward", op = "forward", backend = "cuda", template = "cuda/simt_forward.cu",
  doc = "float32 a query row at a time, by a thread or a warp: the steps of a write-up's ladder.",

  accepts = function(p, dev)
    if dev.cc < 80 then return false, "it needs compute capability 8.0" end
    if p.dtype ~= "f32" then return false, "it is for f32" end
    return p.head_dim <= 256 and p.head_dim_v <= 256, "head dimensions go up to 256"
  end,

  params = {
    { "DOT", { "thread", "down", "xor" },
      "a row is a thread's; or a warp's that adds by shuffle-down and tells all, or by XOR" },
    { "WARPS", { 1, 4, 8, 16 }, "warps of a block" },
    { "SOFTMAX", { "two_pass", "online" }, "the largest logit first, or as the keys come" },
    { "Q", { "memory", "registers" }, "Q is read for each key, or once" },
    { "OUT", { "memory", "registers" }, "O is brought up to date in memory, or written once" },
    { "VECTOR", { 1, 4 }, "floats of a load" },
    { "KEYS", { 1, 2, 4 }, "keys at a time" },
    { "TILE", { 0, 16, 32, 64 }, "keys in shared memory together; 0: none are" },
  },

  core = { DOT = { "xor" }, SOFTMAX = { "online" }, Q = { "registers" }, OUT = { "registers" },
           WARPS = { 4, 8, 16 } },

  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.LSE, c.ALIGNED = p.lse, p.alignment == "a16"
    c.SMEM = 4 * c.TILE * (round_up(p.head_dim, 4) + round_up(p.head_dim_v, 4))
    c.HELD = held(c, p)
  end,

  require = {
    { "loads of four need rows of whole 16 bytes", { "VECTOR" },
      function(c, p)
        return c.VECTOR == 1
          or (p.alignment == "a16" and p.head_dim % 4 == 0 and p.head_dim_v % 4 == 0)
      end },
    { "tiles are read once", { "SOFTMAX", "TILE" },
      function(c) return c.TILE == 0 or c.SOFTMAX == "online" end },
    { "two warps copy a row at least", { "WARPS", "TILE" },
      function(c) return c.TILE == 0 or c.WARPS > 1 end },
    { "tiles fit in shared memory", { "TILE" },
      function(c, p, dev) return c.SMEM <= dev.smem_optin end },
    { "a thread's part of Q and O fits its registers",
      { "DOT", "WARPS", "Q", "OUT", "VECTOR", "TILE" },
      function(c, p, dev)
        return c.HELD + 60 <= math.min(255, floor_div(dev.regs_per_sm, 32 * c.WARPS))
      end },
  },

  launch = function(c)
    local rows = c.DOT == "thread" and 32 * c.WARPS or c.WARPS
    return { { rows = rows, grid = "tiles", threads = 32 * c.WARPS, smem = c.SMEM } }
  end,

  defaults = function(p)
    local fours = p.alignment == "a16" and p.head_dim % 4 == 0 and p.head_dim_v % 4 == 0
    return { DOT = "xor", WARPS = 8, SOFTMAX = "online", Q = "registers", OUT = "registers",
             VECTOR = fours and 4 or 1, KEYS = 2, TILE = 32 }
  end,
}
