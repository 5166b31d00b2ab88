-- test_lib.lua: the names that space files and templates see.
local engine = ...
local base, failures = engine.lib.base, {}

local function same(name, is, want)
  if is ~= want then
    failures[#failures + 1] = ("%s: is %s, want %s"):format(name, tostring(is), tostring(want))
  end
end

local function fails(name, part, f, ...)
  local ok, message = pcall(f, ...)
  if ok or not string.find(tostring(message), part, 1, true) then
    failures[#failures + 1] = ("%s: %s, want an error with '%s'"):format(name, tostring(message),
      part)
  end
end

-- Nothing that reads files, loads code, or sees the engine.
for _, name in ipairs {
  "io", "os", "debug", "load", "loadstring", "loadfile", "dofile", "require", "package",
  "collectgarbage", "rawset", "rawget", "rawequal", "rawlen", "setmetatable", "getmetatable",
  "pcall", "xpcall", "coroutine", "next", "print", "warn", "_G", "_ENV", "utf8",
} do
  same(name, base[name], nil)
end
for _, name in ipairs { "dump", "find", "match", "gmatch", "gsub", "pack", "unpack", "packsize" } do
  same("string." .. name, base.string[name], nil)
  same("method " .. name, ("")[name], nil)
end
same("math.random", base.math.random, nil)
same("math.randomseed", base.math.randomseed, nil)
same("table.sort", base.table.sort, nil)
same("string's metatable", getmetatable(""), false)
for _, name in ipairs { "string", "table", "math" } do
  same(name .. "'s metatable", getmetatable(base[name]), false)
  fails(name, name .. " cannot be changed", function() base[name].x = 1 end)
end

same("ceil_div", base.ceil_div(7, 2), 4)
same("ceil_div", base.ceil_div(8, 2), 4)
same("ceil_div", base.ceil_div(-7, 2), -3)
same("floor_div", base.floor_div(7, 2), 3)
same("round_up", base.round_up(65, 64), 128)
same("round_up", base.round_up(64, 64), 64)
same("is_pow2", base.is_pow2(64), true)
same("is_pow2", base.is_pow2(0), false)
same("is_pow2", base.is_pow2(48), false)
same("log2", base.log2(1 << 40), 40)
fails("log2", "48 is not a power of two", base.log2, 48)
fails("ceil_div", "ceil_div's first argument is 1.5, not an integer", base.ceil_div, 1.5, 2)
fails("ceil_div", "divisor must be positive", base.ceil_div, 1, 0)
same("sizeof", base.sizeof("bf16"), 2)
fails("sizeof", "no dtype 'f64'", base.sizeof, "f64")
same("is_half", base.is_half("f16"), true)
same("is_half", base.is_half("f32"), false)
same("contains", base.contains({ 1, 2 }, 2), true)
same("contains", base.contains({ 1, 2 }, 3), false)

-- Vectors of CPUs: the widest first, and always the last.
local function sets(dev)
  local parts = {}
  for _, set in ipairs(base.vector_sets(dev)) do
    parts[#parts + 1] = ("%s %d/%d %d"):format(set.name, set.full, set.half, set.registers)
  end
  return table.concat(parts, ", ")
end
same("vector_sets", sets { avx512f = 1, avx2 = 1, fma = 1, neon = 0 },
  "avx512 16/8 32, avx2 8/0 16, base 4/0 16")
same("vector_sets", sets { avx512f = 0, avx2 = 1, fma = 0, neon = 0 }, "base 4/0 16")
same("vector_sets", sets { avx512f = 0, avx2 = 0, fma = 0, neon = 1 }, "base 4/0 32")

-- pairs goes by sorted keys.
local order = {}
for key, value in base.pairs { z = 1, a = 2, [2] = 3, [1] = 4, m = 5 } do
  order[#order + 1] = key .. "=" .. value
end
same("pairs", table.concat(order, " "), "1=4 2=3 a=2 m=5 z=1")
fails("pairs", "plain tables only", base.pairs, base.string)

local t = { 1, 2 }
base.table.insert(t, 3)
base.table.insert(t, 1, 0)
same("insert", table.concat(t, " "), "0 1 2 3")
same("remove", base.table.remove(t, 2), 1)
same("remove", base.table.remove(t), 3)
same("remove", table.concat(t, " "), "0 2")
fails("insert", "outside the list", base.table.insert, t, 9, 1)
same("concat", base.table.concat({ 1, 2 }, "-"), "1-2")
same("rep", base.string.rep("ab", 3, "-"), "ab-ab-ab")
same("rep", base.string.rep("ab", -1), "")
same("format", base.string.format("%d %s %5.2f", 1, "x", 0.5), "1 x  0.50")
same("tostring", base.tostring(3), "3")
fails("tostring", "has no text: it is a table", base.tostring, {})

-- Words that are near.
same("hint", engine.hint("BLOCKM", { "BLOCK_M", "STAGES" }), "; did you mean 'BLOCK_M'?")
same("hint", engine.hint("xyz", { "BLOCK_M", "STAGES" }), "")

return table.concat(failures, "\n")
