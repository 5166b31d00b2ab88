-- cpu/toy_forward: a small right kernel for the tests: one query row at a time, two passes.
return family {
  name = "toy_forward", op = "forward", backend = "cpu", template = "cpu/toy_forward.c",
  doc = "Plain attention, one query row at a time; for tests.",
  accepts = function(p)
    if p.dtype ~= "f32" then return false, "it is for f32" end
    return true
  end,
  params = {
    { "ROWS", { 1, 4, 16 }, "query rows of a task" },
    { "LANES", { 1, 2, 4, 8 }, "partial sums of a dot product" },
    { "ORDER", { "row", "longest_first" }, "order of the tasks" },
    { "OPT", { "-O1", "-O2" }, "optimisation" },
  },
  core = { ROWS = { 4, 16 }, OPT = { "-O2" } },
  derive = function(c, p)
    c.HEAD_DIM, c.HEAD_DIM_V = p.head_dim, p.head_dim_v
    c.WIDE = c.LANES > 4
    c.UNITS = c.ROWS * c.LANES
  end,
  require = {
    { "lanes divide head_dim", { "LANES" }, function(c, p) return p.head_dim % c.LANES == 0 end },
    { "few rows or few lanes", { "ROWS", "LANES" }, function(c) return c.UNITS <= 64 end },
  },
  launch = function(c)
    return { { grid = "tiles", rows = c.ROWS, order = c.ORDER } }
  end,
  options = function(c) return { flags = { c.OPT } } end,
  defaults = function(p)
    return { ROWS = 4, LANES = p.head_dim % 4 == 0 and 4 or 1, ORDER = "row", OPT = "-O2" }
  end,
}
