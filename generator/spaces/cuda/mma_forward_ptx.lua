-- cuda/mma_forward_ptx: mma_forward's 64-row tile for causal attention at head_dim 128, in PTX.

return family {
  name = "mma_forward_ptx", op = "forward", backend = "cuda",
  template = "cuda/mma_forward_ptx.ptx",
  doc = "Causal attention at head_dim 128 on mma.sync tensor cores, 64 query rows a block, in PTX.",

  accepts = function(p, dev)
    if dev.cc < 80 then return false, "it needs compute capability 8.0" end
    if not is_half(p.dtype) then return false, "it is for f16 and bf16" end
    if p.head_dim ~= 128 or p.head_dim_v ~= 128 then return false, "it is for head_dim 128" end
    if p.mask ~= "causal" and p.mask ~= "causal_tl" then return false, "it is for causal masks" end
    return p.alignment == "a16", "it needs 16-byte rows"
  end,

  params = {
    { "BLOCK_N", { 32, 64 }, "keys of a tile" },
    { "STAGES", { 1, 2, 3 }, "buffers of K and V in shared memory" },
    { "PAD", { 0, 8, 16 }, "elements behind each row in shared memory, against bank conflicts" },
    { "UNROLL", { 1, 2, 3 }, "tiles of keys in the body of the loop" },
    { "ORDER", { "longest_first", "row" }, "order of the query tiles" },
    { "MIN_BLOCKS", { 1, 3 },
      "blocks a multiprocessor that the registers must allow (2 always fit)" },
  },

  derive = function(c, p)
    c.TYPE = p.dtype
    c.PITCH = 2 * (128 + c.PAD)
    c.Q_BYTES = 64 * c.PITCH
    c.STAGE_BYTES = 2 * c.BLOCK_N * c.PITCH
    c.SMEM = c.Q_BYTES + c.STAGES * c.STAGE_BYTES
  end,

  require = {
    { "tiles fit in shared memory", { "BLOCK_N", "STAGES", "PAD" },
      function(c, _, dev) return c.SMEM <= dev.smem_optin end },
    { "the blocks asked for fit a multiprocessor", { "BLOCK_N", "STAGES", "PAD", "MIN_BLOCKS" },
      function(c, _, dev) return c.MIN_BLOCKS * (c.SMEM + 1024) <= dev.smem_per_sm end },
  },

  launch = function(c)
    return { { rows = 64, grid = "tiles", threads = 128, smem = c.SMEM } }
  end,

  defaults = function()
    return {
      BLOCK_N = 32, STAGES = 2, PAD = 8, UNROLL = 1, ORDER = "longest_first", MIN_BLOCKS = 1,
    }
  end,
}
