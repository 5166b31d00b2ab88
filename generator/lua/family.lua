-- family.lua: loads a space file and checks everything in it that can be checked without a problem.

local engine = ...
local family = {}

local find, format, match = string.find, string.format, string.match

local fields = { -- name = { type, needed }
  name = { "string", true }, op = { "string", true }, backend = { "string", true },
  template = { "string", true }, doc = { "string", true }, accepts = { "function", true },
  params = { "table", true }, core = { "table" }, derive = { "function" },
  require = { "table" }, launch = { "function", true }, options = { "function" },
  defaults = { "function", true }, specialise = { "table" }, reference = { "boolean" },
  preference = { "number" },
}
local ops = { "forward" }
local endings = { c = true, cu = true, ptx = true }

-- Names that a parameter or a derived value would hide.
local reserved = { p = true, dev = true, KERNEL = true, family = true }

function family.is_reserved(name)
  return reserved[name] or engine.lib.base[name] ~= nil
end

local keywords = {}
for _, word in ipairs {
  "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
  "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
} do
  keywords[word] = true
end

-- The line of the file where `word` first stands alone, best as a text of its own (1 if nowhere):
-- for faults in tables.
local function line_of(text, word)
  local escaped = string.gsub(word, "%W", "%%%0")
  for _, pattern in ipairs { '"' .. escaped .. '"', "%f[%w_]" .. escaped .. "%f[^%w_]" } do
    local line = 1
    for row in string.gmatch(text, "[^\n]*") do
      if find(row, pattern) and not find(row, "^%s*%-%-") then return line end
      line = line + 1
    end
  end
  return 1
end

-- A checker for one file: fail(word, ...) names the line where `word` stands.
local function failing(file, text)
  return function(word, ...)
    error(("%s:%d: %s"):format(file, line_of(text, word), format(...)), 0)
  end
end

local function check_fields(f, fail)
  for key in pairs(f) do
    if not fields[key] then
      fail(tostring(key), "a family has no field '%s'%s", tostring(key),
        engine.hint(key, engine.keys(fields)))
    end
  end
  for _, key in ipairs(engine.keys(fields)) do
    local kind, needed = fields[key][1], fields[key][2]
    if f[key] == nil then
      if needed then fail("family", "the field '%s' (a %s) is missing", key, kind) end
    elseif type(f[key]) ~= kind then
      fail(key, "'%s' is a %s; it must be a %s", key, type(f[key]), kind)
    end
  end
end

local function check_names(f, full, fail)
  if f.backend .. "/" .. f.name ~= full then
    fail("name", "the file is %s, so backend is '%s' and name is '%s'", full,
      match(full, "^(.-)/"), match(full, "/(.*)$"))
  end
  if not match(f.name, "^%l[%l%d_]*$") then
    fail("name", "a family's name is made of a-z, 0-9 and _")
  end
  if f.op ~= ops[1] then
    fail("op", "no operation '%s'%s", f.op, engine.hint(f.op, ops))
  end
  local ending = match(f.template, "^" .. full .. "%.(%w+)$")
  if not endings[ending] then
    fail("template", "the template of %s is %s.c, .cu or .ptx, not '%s'", full, full, f.template)
  end
  f.language = ending
end

local function value_text(value)
  if math.type(value) == "integer" then return format("%d", value) end
  if type(value) == "boolean" then return value and "1" or "0" end
  return type(value) == "string" and match(value, "^[%w_.+:-]+$")
end

-- params -> list of { name, values, texts, doc }, and index by name.
local function check_params(f, fail)
  local index, list = {}, {}
  if #f.params > 40 then fail("params", "a space has at most 40 parameters") end
  for i, row in ipairs(f.params) do
    if type(row) ~= "table" then fail("params", "parameter %d is no table", i) end
    local name, values, doc = row[1], row[2], row[3]
    if type(name) ~= "string" or not match(name, "^%a[%w_]*$") or #name > 31 or keywords[name]
      or family.is_reserved(name) then
      fail("params", "parameter %d: '%s' cannot be a parameter's name", i, tostring(name))
    end
    if index[name] then fail(name, "parameter %s stands twice", name) end
    if type(values) ~= "table" or #values == 0 or #values > 64 then
      fail(name, "parameter %s needs a list of 1 to 64 values", name)
    end
    if type(doc) ~= "string" then fail(name, "parameter %s needs its doc, a text", name) end
    local texts, seen = {}, {}
    for k, value in ipairs(values) do
      local text = value_text(value)
      if not text or #text > 31 then
        fail(name, "a value of %s is '%s': values are integers, words or booleans", name,
          tostring(value))
      end
      if seen[text] then fail(name, "%s has the value %s twice", name, text) end
      texts[k], seen[text] = text, k
    end
    index[name] = i
    list[i] = { name = name, values = values, texts = texts, doc = doc, find = seen }
  end
  f.params, f.index = list, index
end

function family.names(f)
  return engine.keys(f.index)
end

-- The index of a parameter's value; fail(format, ...) says what is wrong with it.
function family.value_index(f, name, value, fail)
  local i = f.index[name]
  if not i then
    fail("no parameter '%s'%s", tostring(name), engine.hint(name, family.names(f)))
  end
  local param = f.params[i]
  local k = param.find[value_text(value) or ""]
  if not k or param.values[k] ~= value then
    fail("%s has no value '%s'; it has %s", name, tostring(value),
      table.concat(param.texts, " "))
  end
  return k
end

-- core -> for each parameter, the set of value indices that it keeps (nil: all).
local function check_core(f, fail)
  local core = {}
  local function fault(form, ...) fail("core", "core: " .. form, ...) end
  for name, values in pairs(f.core or {}) do
    if type(values) ~= "table" or #values == 0 then
      fault("%s needs a list of values", tostring(name))
    end
    local kept = {}
    for _, value in ipairs(values) do kept[family.value_index(f, name, value, fault)] = true end
    core[f.index[name]] = kept
  end
  f.core = core
end

-- require -> list of { name, reads = parameter indices, listed = set of names, test }.
local function check_require(f, fail)
  local list = {}
  for i, row in ipairs(f.require or {}) do
    local name, reads, test = nil, nil, nil
    if type(row) == "table" then name, reads, test = row[1], row[2], row[3] end
    if type(name) ~= "string" or type(reads) ~= "table" or type(test) ~= "function" then
      fail("require", "constraint %d is not { \"reason\", { \"PARAMETER\", ... }, function }", i)
    end
    local c = { name = name, reads = {}, listed = {}, test = test }
    for k, read in ipairs(reads) do
      if not f.index[read] then
        fail("require", "'%s' reads '%s', which is no parameter%s", name, tostring(read),
          engine.hint(read, family.names(f)))
      end
      c.reads[k], c.listed[read] = f.index[read], true
    end
    list[i] = c
  end
  f.require = list
end

local function check_specialise(f, fail, runtime_fields)
  for _, name in ipairs(f.specialise or {}) do
    if not engine.lib.base.contains(runtime_fields, name) then
      fail("specialise", "'%s' is no run-time field%s", tostring(name),
        engine.hint(name, runtime_fields))
    end
  end
  f.specialise = f.specialise or {}
end

-- "file:line" where a function of the family begins.
function family.position(f, fn)
  return ("%s:%d"):format(f.file, debug.getinfo(fn, "S").linedefined)
end

-- Loads spaces/FULL.lua. runtime_fields: the names that `specialise` may list.
function family.load(full, runtime_fields)
  local file = "spaces/" .. full .. ".lua"
  local made = {}
  local names = { family = function(t)
    made[#made + 1] = t
    return t
  end }
  local env = engine.lib.environment(function(name) return names[name] end,
    function() return { "family" } end, "name")
  local chunk, text = engine.load(file, env)
  local f = chunk()
  local fail = failing(file, text)
  if type(f) ~= "table" or f ~= made[1] then
    fail("family", "a space file ends with return family { ... }")
  end
  check_fields(f, fail)
  check_names(f, full, fail)
  check_params(f, fail)
  check_core(f, fail)
  check_require(f, fail)
  check_specialise(f, fail, runtime_fields)
  f.file, f.full, f.fail = file, full, fail
  f.reference = f.reference or false
  f.preference = f.preference or 0
  if math.type(f.preference) ~= "integer" then fail("preference", "preference is an integer") end
  return f
end

return family
