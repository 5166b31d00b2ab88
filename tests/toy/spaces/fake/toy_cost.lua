-- fake/toy_cost: a space with a known best for the fake device: TILE=64 STAGES=2 UNROLL=4 PACK=1.
return family {
  name = "toy_cost", op = "forward", backend = "fake", template = "fake/toy_cost.c",
  doc = "A made-up cost for every configuration; for tests.",
  accepts = function() return true end,
  params = {
    { "TILE", { 16, 32, 64, 128 }, "query rows of a tile" },
    { "STAGES", { 1, 2, 3, 4 }, "tiles in flight" },
    { "UNROLL", { 1, 2, 4 }, "unrolling" },
    { "PACK", { 0, 1 }, "copy K and V first" },
  },
  core = { STAGES = { 1, 2, 3 } },
  derive = function(c)
    c.STORED = c.TILE * c.STAGES
    c.COST = 100 + 6 * (log2(c.TILE) - 6) * (log2(c.TILE) - 6)
      + 4 * (c.STAGES - 2) * (c.STAGES - 2) + 3 * (2 - log2(c.UNROLL)) + 2 * (1 - c.PACK)
  end,
  require = {
    { "the tiles fit", { "TILE", "STAGES" }, function(c) return c.STORED <= 256 end },
  },
  launch = function(c) return { { grid = "tiles", rows = c.TILE } } end,
  defaults = function() return { TILE = 32, STAGES = 1, UNROLL = 1, PACK = 0 } end,
}
