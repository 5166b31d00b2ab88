-- space.lua: a family bound to a class and a device: its constraints, its default, its variants.

local engine = ...
local space = {}

local families = {} -- by full name, loaded when first asked for

-- The checked family. `fields` is the list of run-time fields.
function space.family(full, fields)
  local f = families[full]
  if not f then
    f = engine.family.load(full, fields)
    f.runtime_fields = fields
    families[full] = f
  end
  return f
end

local function fault(f, fn, what, ...)
  error(("%s: %s: %s"):format(engine.family.position(f, fn), what, string.format(...)), 0)
end

-- class, device: tables of fields; runtime: all run-time fields of the problem. Gives the space, or
-- nil and the reason why the family does not accept the class.
function space.open(f, class, runtime, device)
  if device.backend ~= f.backend then
    return nil, ("it runs on %s devices"):format(f.backend)
  end
  if class.op ~= f.op then return nil, ("its operation is %s"):format(f.op) end
  local hidden = {}
  for name in pairs(runtime) do hidden[name] = true end
  for _, name in ipairs(f.specialise) do class[name], hidden[name] = runtime[name], nil end
  local whole = {}
  for name, value in pairs(class) do whole[name] = value end
  for name, value in pairs(runtime) do whole[name] = value end
  local s = {
    family = f, runtime = runtime,
    p = engine.view.class(class, hidden), dev = engine.view.device(device),
    problem = engine.view.class(whole, {}), -- for defaults, which render nothing
  }
  local accepted, reason = f.accepts(s.p, s.dev)
  if type(accepted) ~= "boolean" then
    fault(f, f.accepts, "accepts", "it returned %s, not true or false (numbers are compared: "
      .. "dev.fma == 1)", tostring(accepted))
  end
  if accepted then return s end
  return nil, type(reason) == "string" and reason or "its `accepts` says no"
end

-- Whether constraint k holds; the rest are value indices of the parameters that it lists.
function space.test(s, k, ...)
  local f = s.family
  local constraint, values = f.require[k], {}
  for i, index in ipairs(constraint.reads) do
    local param = f.params[index]
    values[param.name] = param.values[select(i, ...)]
  end
  local c = engine.view.config(s, values, constraint.listed, constraint.name)
  local holds = constraint.test(c, s.p, s.dev)
  if type(holds) ~= "boolean" then
    fault(f, constraint.test, "'" .. constraint.name .. "'", "it returned %s, not true or false",
      tostring(holds))
  end
  return holds
end

-- Value indices of the family's default, in the order of the parameters.
function space.default(s)
  local f = s.family
  local values, indices = f.defaults(s.problem, s.dev), {}
  local function fail(...) fault(f, f.defaults, "defaults", ...) end
  if type(values) ~= "table" then fail("it returns a table of parameters") end
  for name, value in pairs(values) do
    local k = engine.family.value_index(f, name, value, fail)
    indices[f.index[name]] = k
  end
  for i, param in ipairs(f.params) do
    if not indices[i] then fail("%s is missing", param.name) end
  end
  return table.unpack(indices)
end

local function chunk_of(f)
  if f.chunk then return f.chunk end
  local name = "templates/" .. f.template
  local text = engine.read(name)
  if not text then f.fail("template", "there is no file %s", name) end
  local current = {}
  local env = engine.lib.environment(function(key) return current.find(key) end,
    function() return current.names() end, "template name")
  f.chunk = engine.template.compile(name, text, env)
  f.current = current
  return f.chunk
end

-- Renders one configuration, given as value indices. Returns source (helpers not yet pasted in),
-- launch record, where `launch` stands, options, and the list of parameters that any of them read.
function space.render(s, ...)
  local f = s.family
  local values, reads, seen = {}, {}, {}
  for i, param in ipairs(f.params) do values[param.name] = param.values[select(i, ...)] end
  local function note(name)
    if not seen[name] then
      seen[name] = true
      reads[#reads + 1] = f.index[name]
    end
  end
  local c, get, names = engine.view.config(s, values, nil, nil, note)
  local chunk = chunk_of(f)
  local fixed = { p = s.p, dev = s.dev, KERNEL = f.name }
  function f.current.find(key)
    local value = fixed[key]
    if value == nil then value = get(key, 1) end
    return value
  end
  f.current.names = names
  local source = engine.template.run("templates/" .. f.template, chunk)
  local record = f.launch(c, s.p, s.dev)
  local text = engine.launch.text(f, record, f.runtime_fields, s.runtime)
  local options = engine.launch.options(f, f.options and f.options(c, s.p, s.dev))
  return source, text, engine.family.position(f, f.launch), options, reads
end

return space
