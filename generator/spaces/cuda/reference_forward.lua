-- cuda/reference_forward: plain attention for every problem; the judge and the last resort.

return family {
  name = "reference_forward", op = "forward", backend = "cuda",
  template = "cuda/reference_forward.cu", reference = true,
  doc = "Plain float32 attention for every problem, one warp a query row; never tuned.",
  accepts = function(p, dev)
    if p.dtype == "bf16" and dev.cc < 80 then return false, "bf16 needs compute capability 8.0" end
    return true
  end,
  params = {
    { "ROWS", { 4, 8 }, "query rows, and warps, of a block" },
  },
  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
  end,
  launch = function(c) return { { rows = c.ROWS, grid = "tiles", threads = 32 * c.ROWS } } end,
  defaults = function() return { ROWS = 4 } end,
}
