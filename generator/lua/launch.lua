-- launch.lua: turns what a family's `launch` and `options` return into text.
--
-- The text of a launch record is described in runtime/core/launch.h, where it is read again; keys
-- that are left out get their defaults there.

local engine = ...
local launch = {}

local format = string.format

-- Kinds of value: "integer", "boolean", "text", or a list of words.
local tables = {
  step = {
    keys = {
      "symbol", "threads", "smem", "cluster", "grid", "rows", "packed", "order", "deal",
      "blocks_per_sm", "spare", "pdl",
    },
    needs = { "grid", "rows" },
    kind = {
      symbol = "text", threads = "integer", smem = "integer", cluster = "integer",
      grid = { "tiles", "kv_tiles", "split", "persistent" }, rows = "integer",
      packed = "boolean", order = { "row", "longest_first" },
      deal = { "dynamic", "static" }, blocks_per_sm = "integer", spare = "integer",
      pdl = "boolean",
    },
  },
  workspace = {
    keys = { "bytes", "per", "round" }, needs = { "bytes", "per" },
    kind = {
      bytes = "integer", per = { "call", "worker", "kv_head", "head", "row", "key" },
      round = "integer",
    },
  },
  tensor_map = {
    keys = { "tensor", "rank", "rows", "swizzle" }, needs = { "tensor", "rows" },
    kind = { tensor = { "q", "k", "v", "o" }, rank = "integer", rows = "integer",
      swizzle = "integer" },
  },
  limit = {
    keys = { "field", "min", "max", "multiple_of" }, needs = { "field" },
    kind = { field = {}, min = "integer", max = "integer", multiple_of = "integer" },
  },
}

local function value_text(kind, value)
  if type(kind) == "table" then
    if engine.lib.base.contains(kind, value) then return value end
    return nil, "one of " .. table.concat(kind, " ") .. engine.hint(value, kind)
  elseif kind == "integer" then
    local whole = math.tointeger(value)
    if type(value) == "number" and whole then return format("%d", whole) end
    return nil, "an integer"
  elseif kind == "boolean" then
    if type(value) == "boolean" then return value and "1" or "0" end
    return nil, "true or false"
  end
  if type(value) == "string" and string.find(value, "^[%a_][%w_]*$") then return value end
  return nil, "a C name"
end

-- One line: "step symbol=... grid=...".
local function row_text(word, row, fail)
  local spec = tables[word]
  if type(row) ~= "table" then fail("each %s is a table", word) end
  for key in pairs(row) do
    if not spec.kind[key] then
      fail("a %s has no field '%s'%s", word, tostring(key), engine.hint(key, spec.keys))
    end
  end
  for _, key in ipairs(spec.needs) do
    if row[key] == nil then fail("a %s needs '%s'", word, key) end
  end
  local parts = { word }
  for _, key in ipairs(spec.keys) do
    if row[key] ~= nil then
      local text, want = value_text(spec.kind[key], row[key])
      if not text then
        fail("%s of a %s is '%s'; it must be %s", key, word, tostring(row[key]), want)
      end
      parts[#parts + 1] = key .. "=" .. text
    end
  end
  return table.concat(parts, " ")
end

local function rows_text(lines, word, rows, max, fail)
  if rows == nil then return end
  if type(rows) ~= "table" or #rows > max then
    fail("%s lines are a list of at most %d", word, max)
  end
  for _, row in ipairs(rows) do lines[#lines + 1] = row_text(word, row, fail) end
end

local parts = { limits = true, workspace = true, splits = true, zero_bytes = true,
  tensor_maps = true }

local function check_keys(record, fail)
  for key in pairs(record) do
    if not (parts[key] or math.type(key) == "integer" and key >= 1 and key <= #record) then
      fail("a launch record has no field '%s'%s", tostring(key),
        engine.hint(key, engine.keys(parts)))
    end
  end
end

-- record: what `launch` returned; runtime: the values of the run-time fields.
function launch.text(f, record, fields, runtime)
  local function fail(...)
    error(engine.family.position(f, f.launch) .. ": launch: " .. format(...), 0)
  end
  if type(record) ~= "table" or #record < 1 or #record > 3 then
    fail("it returns a list of 1 to 3 steps")
  end
  check_keys(record, fail)
  tables.limit.kind.field = fields
  local lines = {}
  for i, step in ipairs(record) do
    if type(step) == "table" and step.symbol == nil then
      if i > 1 then fail("step %d needs a symbol of its own", i) end
      local named = { symbol = f.name }
      for key, value in pairs(step) do named[key] = value end
      step = named
    end
    lines[i] = row_text("step", step, fail)
  end
  rows_text(lines, "workspace", record.workspace, 4, fail)
  rows_text(lines, "tensor_map", record.tensor_maps, 4, fail)
  rows_text(lines, "limit", record.limits, 16 - #f.specialise, fail)
  for _, name in ipairs(f.specialise) do
    lines[#lines + 1] = format("limit field=%s min=%d max=%d", name, runtime[name], runtime[name])
  end
  for _, key in ipairs { "splits", "zero_bytes" } do
    if record[key] ~= nil then
      local text = value_text("integer", record[key])
      if not text then fail("%s is '%s', not an integer", key, tostring(record[key])) end
      lines[#lines + 1] = key .. " " .. text
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- "compiler=gcc -O3 -mavx2"; "" without options.
function launch.options(f, options)
  if not f.options then return "" end
  local function fail(...)
    error(engine.family.position(f, f.options) .. ": options: " .. format(...), 0)
  end
  if type(options) ~= "table" then fail("it returns { compiler = ..., flags = { ... } }") end
  for key in pairs(options) do
    if key ~= "compiler" and key ~= "flags" then
      fail("unknown field '%s'%s", tostring(key), engine.hint(key, { "compiler", "flags" }))
    end
  end
  local words = {}
  if options.compiler ~= nil then
    if type(options.compiler) ~= "string" or not string.find(options.compiler, "^[%w_.+-]+$") then
      fail("compiler is '%s', not a program's name", tostring(options.compiler))
    end
    words[1] = "compiler=" .. options.compiler
  end
  if options.flags ~= nil and type(options.flags) ~= "table" then fail("flags is a list") end
  for _, flag in ipairs(options.flags or {}) do
    if type(flag) ~= "string" or not string.find(flag, "^%-[%w_.,=+:-]+$") then
      fail("'%s' is no compiler flag", tostring(flag))
    end
    words[#words + 1] = flag
  end
  return table.concat(words, " ")
end

return launch
