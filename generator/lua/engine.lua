-- engine.lua: joins the scripts, and is what C calls.
--
-- C gives `host`: read(name) is the text of an embedded or overlaid file, or nil; charge(n) counts
-- n steps of work that the instruction count does not see; nearest(word, list) is the word meant.
-- These scripts see all of Lua; space files and templates see lib.lua's names only.

local host = ...
local engine = { read = host.read, charge = host.charge, nearest = host.nearest }

-- Reads and compiles a file as text, to run in env (nil: all of Lua); its errors name it `name`.
function engine.load(name, env)
  local text = host.read(name)
  if not text then error("there is no file " .. name, 0) end
  local chunk, message = load(text, "@" .. name, "t", env or _ENV)
  if not chunk then error(message, 0) end
  return chunk, text
end

-- "; did you mean 'x'?" or nothing.
function engine.hint(word, list)
  local near = type(word) == "string" and host.nearest(word, list)
  return near and ("; did you mean '%s'?"):format(near) or ""
end

-- The keys of a table that are strings, sorted: for messages.
function engine.keys(t)
  local list = {}
  for key in pairs(t) do
    if type(key) == "string" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

for _, name in ipairs { "lib", "template", "profiles", "family", "view", "launch", "space" } do
  engine[name] = engine.load("lua/" .. name .. ".lua")(engine)
end
engine.lib.seal()

return engine
