-- cuda/planted: a plain kernel in 60 right variants, and one of each fault among them.

return family {
  name = "planted", op = "forward", backend = "cuda", template = "cuda/planted.cu",
  doc = "One thread a row, with faults on request.",
  accepts = function(p) return p.dtype == "f32" and p.head_dim <= 64, "it is for small f32" end,
  params = {
    { "THREADS", { 32, 64, 96, 128, 160, 192, 224, 256, 288, 320 }, "rows of a block" },
    { "UNROLL", { 1, 2, 3, 4, 6, 8 }, "keys whose scores are computed at once" },
    { "WHAT", { "ok", "compile", "wild", "misaligned", "trap", "endless", "shared", "memory",
      "last_row", "lse" }, "what is wrong" },
  },
  derive = function(c, p) c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v end,
  require = {
    { "each fault is planted once", { "THREADS", "UNROLL", "WHAT" },
      function(c) return c.WHAT == "ok" or (c.THREADS == 96 and c.UNROLL == 2) end },
  },
  launch = function(c)
    local record = { {
      rows = c.THREADS, grid = "tiles", threads = c.THREADS,
      smem = c.WHAT == "shared" and 1024 * 1024 or 0,
    } }
    if c.WHAT == "memory" then record.workspace = { { bytes = 1 << 40, per = "call" } } end
    return record
  end,
  defaults = function() return { THREADS = 64, UNROLL = 1, WHAT = "ok" } end,
}
