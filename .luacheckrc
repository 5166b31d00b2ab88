-- luacheck: what the names are that the generator gives to its scripts.
std = "lua54"
max_line_length = 100
codes = true

-- Space files see what generator/lua/lib.lua offers, not Lua's own globals.
local space = {
  std = "none",
  read_globals = {
    "family", "assert", "error", "ipairs", "pairs", "select", "tonumber", "tostring", "type",
    "string", "table", "math", "ceil_div", "floor_div", "round_up", "is_pow2", "log2", "sizeof",
    "is_half", "vector_sets", "contains", "list",
  },
  ignore = { "212" }, -- accepts(p, dev) and its like need not use all they are given
}
files["generator/spaces"] = space
files["**/spaces"] = space
