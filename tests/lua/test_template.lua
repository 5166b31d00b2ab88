-- test_template.lua: the engine's two rules, its arithmetic, and its #line directives.
local engine = ...
local template, failures = engine.template, {}

local function same(name, is, want)
  if is ~= want then
    failures[#failures + 1] = ("%s:\n    is   %q\n    want %q"):format(name, is, want)
  end
end

local function expand(text, names)
  local env = engine.lib.environment(function(key) return names and names[key] end,
    function() return {} end, "name")
  local ok, result = pcall(function()
    return template.run("t.c", template.compile("t.c", text, env))
  end)
  return ok and result or "error: " .. result
end

-- The text behind the first #line.
local function body(text, names)
  local out = expand(text, names)
  return (string.gsub(out, '^#line 1 "t.c"\n', ""))
end

local cases = {
  { "plain text", "int a;\n", "int a;\n" },
  { "no newline at the end", "int a;", "int a;\n" },
  { "empty", "", "" },
  { "carriage returns", "a\r\nb\r\n", "a\nb\n" },
  { "value", "a $(N) b\n", "a 7 b\n" },
  { "two values", "$(N)$(N)\n", "77\n" },
  { "glued", "acc$(N)_x\n", "acc7_x\n" },
  { "text value", "$(W)\n", "word\n" },
  { "booleans", "$(true) $(false)\n", "1 0\n" },
  { "integral float", "$(8.0)\n", "8\n" },
  { "negative", "$(-N)\n", "-7\n" },
  { "large", "$(1 << 62)\n", "4611686018427387904\n" },
  { "parentheses", "$((N + 1) * (2 + (1)))\n", "24\n" },
  { "parentheses in strings", "$(\")\" .. '(' .. [[)]] .. [==[(]]]==])\n", ")()(]]\n" },
  { "escaped quotes", "$('\\'' .. \"\\\")\")\n", "'\")\n" },
  { "index and call", "$(L[2] .. ceil_div(N, 2))\n", "b4\n" },
  { "dollar signs", "a $ b $$ c $x ${y}\n", "a $ b $$ c $x ${y}\n" },
  { "quotes and backslashes", [["a\n" '\\' \]] .. "\n", [["a\n" '\\' \]] .. "\n" },
  { "no Lua without a blank", "//@if x\n//@TODO\n", "//@if x\n//@TODO\n" },
  { "Lua behind code is text", "int a; //@ if\n", "int a; //@ if\n" },
  { "exact division", "$(24 / 4)\n", "6\n" },
  { "division is left to right", "$(64 / 4 / 2)\n", "8\n" },
  { "division and product", "$(3 * 8 / 4 * 5)\n", "30\n" },
  { "division under minus", "$(-8 / 4 - 8 / 2)\n", "-6\n" },
  { "division and power", "$(16 / 2 ^ 2)\n", "4\n" },
  { "division in an index", "$(L[4 / 2])\n", "b\n" },
  { "division in a call", "$(ceil_div(64 / 4, 3))\n", "6\n" },
  { "division of floats that are integers", "$(8.0 / 4)\n", "2\n" },
  { "slash in a string", "$('a/b')\n", "a/b\n" },
  { "loop", "//@ for i = 1, 2 do\n$(i)\n//@ end\n",
    '#line 2 "t.c"\n1\n#line 2 "t.c"\n2\n' },
  { "line after Lua", "a\n//@ local x = 1\nb\n", 'a\n#line 3 "t.c"\nb\n' },
  { "no line where none is needed", "//@ if true then\n//@ end\n\n\n", "\n\n" },
  { "choice", "//@ if N == 7 then\nyes\n//@ else\nno\n//@ end\n", '#line 2 "t.c"\nyes\n' },
  { "expression over lines", "a $(N +\n1) b\nc\n", 'a 8 b\n#line 3 "t.c"\nc\n' },
  { "value with newlines", "a $('x\\ny') b\nc\n", 'a x\ny b\n#line 2 "t.c"\nc\n' },
  { "no line inside a continued macro", "#define X \\\n//@ for i = 1, 2 do\n  f($(i)) \\\n//@ end\n"
    .. "  g()\nend\n", "#define X \\\n  f(1) \\\n  f(2) \\\n  g()\n#line 6 \"t.c\"\nend\n" },
  { "local functions", "//@ local function f(n) return n * 2 end\n$(f(N))\n",
    '#line 2 "t.c"\n14\n' },
  { "Lua at the very end", "a\n//@", "a\n" },
  { "indented Lua with a tab", "\t//@\tlocal x = 2\n$(N)\n", '#line 2 "t.c"\n7\n' },
  { "list", "$(list(3, 'r%d')) $(list(2, function(i) return i * i end, '+'))\n",
    "r0, r1, r2 0+1\n" },
  { "many values in a line", string.rep("$(N)", 600) .. "\n", string.rep("7", 600) .. "\n" },
}
for _, case in ipairs(cases) do
  local want = case[3]
  local names = { N = 7, W = "word", L = { "a", "b" } }
  if string.sub(want, 1, 5) == "#line" then
    same(case[1], expand(case[2], names), want)
  else
    same(case[1], body(case[2], names), want)
  end
end

-- Every #line is right: each output line that is marked says which template line it is of.
local marked = {}
for i = 1, 60 do
  marked[i] = i % 7 == 0 and "//@ for j = 1, 3 do" or i > 7 and i % 7 == 4 and "//@ end" or "L" .. i
end
local line = 0
for row in string.gmatch(expand(table.concat(marked, "\n", 1, 53)), "[^\n]+") do
  local set = string.match(row, "^#line (%d+)")
  line = set and math.tointeger(set) - 1 or line + 1
  if not set then same("line numbers", row, "L" .. line) end
end

return table.concat(failures, "\n")
