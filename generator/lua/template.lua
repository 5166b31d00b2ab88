-- template.lua: the template engine.
--
-- Two rules. A line whose first non-blanks are `//@` and a blank is Lua; `$(expr)` elsewhere is the
-- value of a Lua expression. The whole template becomes one Lua chunk with the same line numbers,
-- so that Lua's own messages point at the template, and the text that it emits carries `#line`
-- wherever output and template part, so that the C compiler's do too.

local engine = ...
local charge = engine.charge
local template = {}

local find, sub, match, format, gsub = string.find, string.sub, string.match, string.format,
  string.gsub

local function fail(name, line, ...)
  error(("%s:%d: %s"):format(name, line, format(...)), 0)
end

local function count_lines(text)
  return select(2, gsub(text, "\n", ""))
end

-- The end of the Lua string whose quote stands at `at`, or nil.
local function string_end(text, at)
  local quote = sub(text, at, at)
  local pos = at + 1
  while true do
    local stop = find(text, "[\\\n" .. quote .. "]", pos)
    local ch = stop and sub(text, stop, stop)
    if ch == quote then return stop end
    if ch ~= "\\" then return nil end
    pos = stop + 2
  end
end

-- Translates the expression that starts at `at`, behind "$(". Gives its code and the position
-- behind its ")". `a / b` becomes `a /__div/ b`, which divides exactly and binds just as `/` does.
local function expression(name, line, text, at)
  local depth, from, pos, code = 1, at, at, {}
  local function fault(stop, ...)
    if find(sub(text, at, stop), "\n", 1, true) then fail(name, line, "$( without its )") end
    fail(name, line, ...)
  end
  while true do
    local stop = find(text, "[()%[\"'/%-]", pos)
    if not stop then fail(name, line, "$( without its )") end
    local ch, pair = sub(text, stop, stop), sub(text, stop, stop + 1)
    pos = stop + 1
    if ch == "(" then
      depth = depth + 1
    elseif ch == ")" then
      depth = depth - 1
      if depth == 0 then
        code[#code + 1] = sub(text, from, stop - 1)
        return table.concat(code), pos
      end
    elseif pair == "//" then
      fault(stop, "// in $(...) begins a comment for every C tool: use floor_div(a, b)")
    elseif pair == "--" then
      fault(stop, "$(...) holds an expression, no comment")
    elseif ch == "/" then
      code[#code + 1] = sub(text, from, stop) .. "__div/"
      from = pos
    elseif ch == "[" then
      local level, _, close = match(text, "^%[(=*)%[", stop), nil, stop
      if level then _, close = find(text, "]" .. level .. "]", pos, true) end
      if not close then fault(stop, "unfinished string in $(...)") end
      pos = close + 1
    elseif ch ~= "-" then
      local close = string_end(text, stop)
      if not close then fault(stop, "unfinished string in $(...)") end
      pos = close + 1
    end
  end
end

-- Translates the text that starts at `at` to the end of its line (behind it, when an expression
-- spans lines). Gives the code and the position of the next line.
local function text_line(name, line, text, at)
  local code = {}
  while true do
    local stop = find(text, "[\n$]", at) or #text + 1
    local first = at
    while sub(text, stop, stop) == "$" and sub(text, stop + 1, stop + 1) ~= "(" do
      stop = find(text, "[\n$]", stop + 1) or #text + 1
    end
    local literal = sub(text, first, stop - 1)
    if sub(text, stop, stop) ~= "$" then
      code[#code + 1] = format("%q", literal) .. ',"\\n"'
      return ("__out(%d,{%s})"):format(line, table.concat(code, ",")), stop + 1
    end
    if literal ~= "" then code[#code + 1] = format("%q", literal) end
    local inner_line = line + count_lines(table.concat(code))
    local inner, behind = expression(name, inner_line, text, stop + 2)
    if not find(inner, "%S") then fail(name, inner_line, "$() is empty") end
    code[#code + 1] = "__val((" .. inner .. "))"
    at = behind
  end
end

-- The Lua code of a template, and which of its lines are Lua.
function template.translate(name, text)
  local code, lua_lines, line, at = {}, {}, 1, 1
  text = gsub(text, "\r\n", "\n")
  if find(text, "\0", 1, true) then fail(name, 1, "a template is text, without zero bytes") end
  while at <= #text do
    local _, sigil = find(text, "^[ \t]*//@", at)
    local stop = sigil and (find(text, "\n", sigil, true) or #text + 1)
    if sigil and find(text, "^[ \t\n]", sigil + 1) or sigil == #text then
      code[#code + 1] = sub(text, sigil + 1, stop - 1)
      lua_lines[line] = true
      at, line = stop + 1, line + 1
    else
      local piece, behind = text_line(name, line, text, at)
      code[#code + 1] = piece
      at, line = behind, line + 1 + count_lines(piece)
    end
  end
  return "local __out,__val,__div=... " .. table.concat(code, "\n"), lua_lines
end

-- A fault that Lua finds at the text behind a `//@` line belongs to that line.
local function explain(name, message, lua_lines)
  local line, what = match(message, "^.-:(%d+): (.*) near '__out'$")
  if not line then return message end
  line = math.tointeger(line)
  for i = line - 1, 1, -1 do
    if lua_lines[i] then return ("%s:%d: %s at the end of the Lua line"):format(name, i, what) end
  end
  return ("%s:%d: %s"):format(name, line, what)
end

function template.compile(name, text, env)
  local code, lua_lines = template.translate(name, text)
  local chunk, message = load(code, "@" .. name, "t", env)
  if not chunk then error(explain(name, message, lua_lines), 0) end
  return chunk
end

local function value(v)
  local kind = type(v)
  if kind == "string" then return v end
  if kind == "boolean" then return v and "1" or "0" end
  if kind == "number" then
    local whole = math.tointeger(v)
    if whole then return format("%d", whole) end
    error(("%.14g is not an integer"):format(v), 2)
  end
  error(kind == "nil" and "the value of $(...) is nil" or "a " .. kind .. " has no text", 2)
end

-- a / b in two steps: a / divide keeps a, and that / b gives the quotient.
local divide = setmetatable({}, {
  __div = function(a)
    if type(a) ~= "number" then
      error(("/ in $(...) divides integers, not a %s"):format(type(a)), 2)
    end
    return setmetatable({ a }, {
      __div = function(kept, b)
        local n, d = math.tointeger(kept[1]), type(b) == "number" and math.tointeger(b)
        if not n or not d then error("/ in $(...) divides integers", 2) end
        if d == 0 then error("division by zero in $(...)", 2) end
        if n % d ~= 0 then
          error(("%d / %d is not an integer: use ceil_div or floor_div"):format(n, d), 2)
        end
        return n // d
      end,
    })
  end,
})

-- Runs a compiled template; gives its text, which starts with a #line of its own.
function template.run(name, chunk)
  local parts, believed, continued = {}, 0, false -- believed: the compiler's idea of the next line
  local function out(line, pieces)
    charge(#pieces)
    local text = table.concat(pieces)
    charge(#text)
    if believed ~= line and not continued and find(text, "%S") then
      parts[#parts + 1] = ('#line %d "%s"\n'):format(line, name)
      believed = line
    end
    parts[#parts + 1] = text
    believed = believed + count_lines(text)
    continued = sub(text, -2) == "\\\n"
  end
  chunk(out, value, divide)
  local text = table.concat(parts)
  if find(text, "\0", 1, true) then error(name .. ": a value holds a zero byte", 0) end
  return text
end

return template
