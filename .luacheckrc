-- luacheck: what the names are that the generator gives to its scripts.
std = "lua54"
max_line_length = 100
codes = true

-- Space files see the sandbox of generator/lua, not Lua's own globals.
files["generator/spaces"] = {
  std = "none",
  read_globals = {
    "family", "assert", "error", "ipairs", "pairs", "select", "tonumber", "tostring", "type",
    "math", "string", "table", "next", "ceil_div", "is_half", "sizeof", "ctype",
  },
  ignore = { "212" }, -- accepts(p, dev) and its like need not use all they are given
}
