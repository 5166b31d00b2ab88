-- view.lua: what the functions of a family see: the class `p`, the device `dev`, and a
-- configuration `c`. Each answers for a name that it does not have with the reason and the
-- nearest one, and `c` notes what was read.

local engine = ...
local view = {}

local function frozen(name)
  return function(_, key)
    error(("%s.%s: %s cannot be changed"):format(name, tostring(key), name), 2)
  end
end

-- The class fields and the run-time fields that the family specialises. `hidden` is the set of the
-- other run-time fields.
function view.class(fields, hidden)
  return setmetatable({}, {
    __index = function(_, key)
      local value = fields[key]
      if value ~= nil then return value end
      if key == "layout" then
        error("p.layout is unknown here: kernels get strides when they run", 2)
      end
      if hidden[key] then
        error(("p.%s is a run-time field: a family that needs it while rendering lists it, "
          .. "specialise = { \"%s\" }"):format(key, key), 2)
      end
      error(("a class has no field '%s'%s"):format(tostring(key),
        engine.hint(key, engine.keys(fields))), 2)
    end,
    __newindex = frozen("p"),
    __metatable = false,
  })
end

-- A device's properties; one that some device has and this one lacks reads as 0.
function view.device(fields)
  local props = engine.profiles.props
  return setmetatable({}, {
    __index = function(_, key)
      local value = fields[key]
      if value ~= nil then return value end
      if props[key] then return 0 end
      local known = engine.keys(fields)
      for _, name in ipairs(engine.keys(props)) do known[#known + 1] = name end
      error(("no device has a property '%s'%s"):format(tostring(key), engine.hint(key, known)), 2)
    end,
    __newindex = frozen("dev"),
    __metatable = false,
  })
end

local STOP = {} -- raised when `derive` reads a parameter that is not to be seen

-- A configuration. values: by parameter name. listed: the names that may be read (nil: all), as
-- the constraint `reason` lists them. note(name): called for each parameter read, be it through a
-- derived value.
--
-- `derive` runs when a derived value is first wanted. With unlisted parameters it runs until it
-- reads one of them; what it has set by then is final, since each name is set once.
function view.config(space, values, listed, reason, note)
  local f = space.family
  local derived, needs, read, ran, stop = {}, {}, {}, false, nil

  local function param(key)
    read[key] = true
    if listed and not listed[key] then
      stop = key
      error(STOP, 0)
    end
    return values[key]
  end

  local writing = setmetatable({}, {
    __index = function(_, key)
      if f.index[key] then return param(key) end
      if derived[key] == nil then
        error(("no parameter '%s', and derive has not set it yet%s"):format(tostring(key),
          engine.hint(key, engine.family.names(f))), 2)
      end
      return derived[key]
    end,
    __newindex = function(_, key, value)
      if type(key) ~= "string" or f.index[key] or engine.family.is_reserved(key) then
        error(("derive cannot set '%s': it has a meaning already"):format(tostring(key)), 2)
      end
      if derived[key] ~= nil then
        error(("derive sets '%s' twice: each name is set once"):format(key), 2)
      end
      derived[key] = value
      local list = {}
      for name in next, read do list[#list + 1] = name end
      needs[key] = list
    end,
    __metatable = false,
  })

  local function run_derive()
    ran = true
    if not f.derive then return end
    local ok, message = pcall(f.derive, writing, space.p, space.dev)
    if not ok and message ~= STOP then error(message, 0) end
  end

  local function unknown(key, level)
    if stop then
      error(("'%s' reads %s, but derive reads %s before it sets that: list %s too, or set it "
        .. "earlier"):format(reason, tostring(key), stop, stop), level + 1)
    end
    local known = engine.family.names(f)
    for _, name in ipairs(engine.keys(derived)) do known[#known + 1] = name end
    error(("no parameter or derived value '%s'%s"):format(tostring(key), engine.hint(key, known)),
      level + 1)
  end

  -- The value of a name, or nil.
  local function get(key, level)
    if f.index[key] then
      if listed and not listed[key] then
        error(("'%s' reads %s, which it does not list"):format(reason, key), level + 1)
      end
      if note then note(key) end
      return values[key]
    end
    if not ran then run_derive() end
    if note and needs[key] then
      for _, name in ipairs(needs[key]) do note(name) end
    end
    return derived[key]
  end

  local c = setmetatable({}, {
    __index = function(_, key)
      local value = get(key, 2)
      if value == nil then unknown(key, 2) end
      return value
    end,
    __newindex = frozen("c"),
    __metatable = false,
  })

  local function names()
    if not ran then run_derive() end
    local list = engine.family.names(f)
    for _, name in ipairs(engine.keys(derived)) do list[#list + 1] = name end
    return list
  end
  return c, get, names
end

return view
