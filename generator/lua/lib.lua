-- lib.lua: the names that space files and templates see.
--
-- A short list of what is safe: nothing that reads files or the clock, that loads code, whose
-- result depends on an address, or that can loop for long outside the instruction count. So there
-- is no pattern matching, no coroutine, no pcall and no metatable; what works on n things in C
-- charges n first. Everything here is read-only.

local engine = ...
local charge = engine.charge
local lib = {}

local type, mtype, tostring, error, select = type, math.type, tostring, error, select
local find, rep, format, concat = string.find, string.rep, string.format, table.concat

local function integer(value, what)
  if mtype(value) ~= "integer" then
    error(("%s is %s, not an integer"):format(what, tostring(value)), 3)
  end
end

local function plain(value, what)
  local kind = type(value)
  if kind == "table" or kind == "function" then
    error(("%s has no text: it is a %s"):format(what, kind), 3)
  end
end

-- Base: what Lua offers, made exact and deterministic.

local base = {
  assert = assert, error = error, ipairs = ipairs, select = select, tonumber = tonumber,
  type = type,
}

function base.tostring(value)
  plain(value, "tostring's argument")
  return tostring(value)
end

-- In the order of the keys (numbers, then strings), so that what is rendered never depends on a
-- hash.
function base.pairs(t)
  if type(t) ~= "table" or getmetatable(t) ~= nil then
    error("pairs walks over plain tables only", 2)
  end
  local keys, n = {}, 0
  for key in next, t do
    local kind = type(key)
    if kind ~= "number" and kind ~= "string" then
      error("pairs needs keys that are numbers or strings", 2)
    end
    n = n + 1
    keys[n] = key
  end
  charge(32 * n)
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  local i = 0
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

-- Arithmetic on integers.

function base.ceil_div(a, b)
  integer(a, "ceil_div's first argument")
  integer(b, "ceil_div's second argument")
  if b <= 0 then error("ceil_div's divisor must be positive", 2) end
  return -(-a // b)
end

function base.floor_div(a, b)
  integer(a, "floor_div's first argument")
  integer(b, "floor_div's second argument")
  if b <= 0 then error("floor_div's divisor must be positive", 2) end
  return a // b
end

function base.round_up(a, b)
  integer(a, "round_up's first argument")
  integer(b, "round_up's second argument")
  if b <= 0 then error("round_up's divisor must be positive", 2) end
  return -(-a // b) * b
end

function base.is_pow2(a)
  integer(a, "is_pow2's argument")
  return a > 0 and a & (a - 1) == 0
end

-- The exponent of a power of two.
function base.log2(a)
  integer(a, "log2's argument")
  if a <= 0 or a & (a - 1) ~= 0 then error(a .. " is not a power of two", 2) end
  local n = 0
  while a > 1 do a, n = a >> 1, n + 1 end
  return n
end

-- Types.

local sizes = { f32 = 4, f16 = 2, bf16 = 2 }

function base.sizeof(dtype)
  local size = sizes[dtype]
  if not size then error(("no dtype '%s'"):format(tostring(dtype)), 2) end
  return size
end

function base.is_half(dtype)
  return dtype == "f16" or dtype == "bf16"
end

-- CPUs.

-- The instruction sets of a CPU whose vectors a template may use, the widest first: `bits` of a
-- vector, floats in it (`full`) and in one of half its width (`half`; 0: there is none),
-- registers, and the flags that compilers want. The last is what every CPU of the kind has.
function base.vector_sets(dev)
  local list = {}
  if dev.avx512f ~= 0 then
    list[#list + 1] = { name = "avx512", bits = 512, full = 16, half = 8, registers = 32,
      flags = { "-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma" } }
  end
  if dev.avx2 ~= 0 and dev.fma ~= 0 then
    list[#list + 1] = { name = "avx2", bits = 256, full = 8, half = 0, registers = 16,
      flags = { "-mavx2", "-mfma" } }
  end
  list[#list + 1] = { name = "base", bits = 128, full = 4, half = 0,
    registers = dev.neon ~= 0 and 32 or 16, flags = {} }
  return list
end

-- Lists.

function base.contains(list, value)
  for i = 1, #list do
    if list[i] == value then return true end
  end
  return false
end

-- "r0, r1, r2": the text of i = 0 .. n - 1 in `form`, a format string or a function of i.
function base.list(n, form, separator)
  integer(n, "list's first argument")
  charge(n)
  local parts = {}
  for i = 0, n - 1 do
    parts[i + 1] = type(form) == "function" and form(i) or format(form, i)
  end
  return concat(parts, separator or ", ")
end

-- string, table and math without what is unsafe.

local strings = {
  byte = string.byte, char = string.char, len = string.len, lower = string.lower,
  reverse = string.reverse, sub = string.sub, upper = string.upper,
}

function strings.rep(text, n, separator)
  separator = separator or ""
  if type(text) ~= "string" or type(separator) ~= "string" then error("rep repeats texts", 2) end
  integer(n, "rep's count")
  if n > 0 then charge(n * (#text + #separator + 1)) end
  return rep(text, n, separator)
end

function strings.format(text, ...)
  if type(text) == "string" and find(text, "%%[-+ #0-9.]*p") then
    error("format has no %p here: addresses change", 2)
  end
  for i = 1, select("#", ...) do plain((select(i, ...)), "format's argument " .. i) end
  return format(text, ...)
end

local tables = {}

function tables.insert(t, ...)
  local n = select("#", ...)
  local at, value = ...
  if n == 1 then
    t[#t + 1] = at
    return
  end
  integer(at, "insert's position")
  if n ~= 2 or at < 1 or at > #t + 1 then error("insert's position is outside the list", 2) end
  for i = #t, at, -1 do t[i + 1] = t[i] end
  t[at] = value
end

function tables.remove(t, at)
  local n = #t
  at = at or n
  integer(at, "remove's position")
  if n == 0 then return nil end
  if at < 1 or at > n then error("remove's position is outside the list", 2) end
  local value = t[at]
  for i = at, n do t[i] = t[i + 1] end
  return value
end

function tables.concat(t, separator, first, last)
  charge(#t)
  return concat(t, separator, first, last)
end

function tables.unpack(t)
  if #t > 200 then error("unpack takes lists of up to 200", 2) end
  return table.unpack(t, 1, #t)
end

local maths = {}
for _, name in ipairs {
  "abs", "ceil", "exp", "floor", "fmod", "huge", "log", "max", "maxinteger", "min", "mininteger",
  "pi", "sqrt", "tointeger", "type",
} do
  maths[name] = math[name]
end

-- Makes the methods of texts (("x"):rep(3)) the same as string's. Called last: the engine's own
-- scripts use string.find and the like as functions.
function lib.seal()
  getmetatable("").__index = strings
  getmetatable("").__metatable = false
end

local function read_only(t, name)
  return setmetatable({}, {
    __index = t,
    __newindex = function() error(name .. " cannot be changed", 2) end,
    __metatable = false,
  })
end

base.string = read_only(strings, "string")
base.table = read_only(tables, "table")
base.math = read_only(maths, "math")
lib.base = base

-- An environment: `find(name)` gives a value or nil, and `names()` all that it knows, for hints.
function lib.environment(find_name, names, what)
  return setmetatable({}, {
    __index = function(_, name)
      local value = base[name]
      if value == nil then value = find_name(name) end
      if value == nil then
        local known = engine.keys(base)
        for _, other in ipairs(names()) do known[#known + 1] = other end
        error(("unknown %s '%s'%s"):format(what, tostring(name), engine.hint(name, known)), 2)
      end
      return value
    end,
    __newindex = function(_, name)
      error(("globals cannot be assigned: write 'local %s'"):format(tostring(name)), 2)
    end,
    __metatable = false,
  })
end

return lib
