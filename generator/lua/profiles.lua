-- profiles.lua: reads devices.lua, the descriptions of devices that need not be here.

local engine = ...
local profiles = {}

local function fail(...) error("devices.lua: " .. string.format(...), 0) end

local function check(row, seen)
  if type(row) ~= "table" then fail("each profile is a table") end
  for _, key in ipairs { "backend", "arch", "name" } do
    if type(row[key]) ~= "string" then fail("a profile needs the text '%s'", key) end
  end
  if seen[row.arch] then fail("'%s' stands twice", row.arch) end
  seen[row.arch] = true
  for key in pairs(row) do
    if key ~= "backend" and key ~= "arch" and key ~= "name" and key ~= "props" then
      fail("%s: unknown field '%s'", row.arch, tostring(key))
    end
  end
  if type(row.props) ~= "table" then fail("%s has no table 'props'", row.arch) end
  for key, value in pairs(row.props) do
    if type(key) ~= "string" or #key > 31 or math.type(value) ~= "integer" then
      fail("%s: props are names of up to 31 characters with integer values", row.arch)
    end
  end
end

-- The rows of devices.lua, checked; each with `keys`, its property names sorted.
function profiles.load()
  local env = engine.lib.environment(function() end, function() return {} end, "name")
  local list, seen = engine.load("devices.lua", env)(), {}
  if type(list) ~= "table" then fail("it returns a list of profiles") end
  profiles.props = {}
  for _, row in ipairs(list) do
    check(row, seen)
    row.keys = engine.keys(row.props)
    for _, key in ipairs(row.keys) do profiles.props[key] = true end
  end
  return list
end

return profiles
