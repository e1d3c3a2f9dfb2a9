-- Writes the served name of the model into the body, and asks the engine of a stream for its usage in each
-- event: a stream that a caller cuts is charged up to there. Takes the usage out of events if the caller did not
-- ask for it. Removes what the door knows from the headers.

local byte, find, sub = string.byte, string.find, string.sub

local USAGE = '{"include_usage":true,"continuous_usage_stats":true}'
-- Largest event that is kept until it is whole. What is larger is passed on as it is.
local LARGEST_EVENT = 65536
-- Headers that choose a worker, a priority or a queue; those that choose nothing for others; and those of batch,
-- which only lower its own priority.
local PREFIXES = @PREFIXES@
local HARMLESS = @HARMLESS@
local EXACT = @EXACT@
local REMOVED = { "authorization", "x-api-key", "cookie", "openai-organization", "openai-project" }

local function is_routing(name, value)
  if HARMLESS[name] or EXACT[name] == value then
    return false
  end
  for _, prefix in ipairs(PREFIXES) do
    if sub(name, 1, #prefix) == prefix then
      return true
    end
  end
  return false
end

local function strip(headers)
  local names = {}
  for name, value in pairs(headers) do
    if byte(name, 1) == 120 and byte(name, 2) == 45 then
      local own = sub(name, 1, 7) == "x-door-" and name ~= "x-door-target" or sub(name, 1, 8) == "x-envoy-"
      if own or is_routing(name, value) then
        names[#names + 1] = name
      end
    end
  end
  for _, name in ipairs(names) do
    headers:remove(name)
  end
  for _, name in ipairs(REMOVED) do
    headers:remove(name)
  end
end

local function known(handle)
  local facts = handle:streamInfo():dynamicMetadata():get("door")
  return facts and facts.places
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("x-door-target") == "@POLICY@" then
    return -- the policy answers itself, and asks who the caller is
  end
  local served = headers:get("x-door-served")
  strip(headers)
  local places = known(handle)
  if not places then
    return
  end
  local opened, model_first, model_last, options_first, options_last, usage =
    places:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$")
  opened, model_first, model_last = tonumber(opened), tonumber(model_first), tonumber(model_last)
  options_first, options_last = tonumber(options_first), tonumber(options_last)
  local body = handle:body()
  local text = body:getBytes(0, body:length())
  local changes = {}
  if served and sub(text, model_first + 1, model_last - 1) ~= served then
    changes[#changes + 1] = { model_first, model_last, '"' .. served .. '"' }
  end
  if usage ~= "as it is" then
    if options_first > 0 then
      changes[#changes + 1] = { options_first, options_last, USAGE }
    else
      changes[#changes + 1] = { opened + 1, opened, '"stream_options":' .. USAGE .. "," }
    end
  end
  if #changes == 0 then
    return
  end
  table.sort(changes, function(one, other) return one[1] < other[1] end)
  local parts, at = {}, 1
  for _, change in ipairs(changes) do
    parts[#parts + 1] = sub(text, at, change[1] - 1)
    parts[#parts + 1] = change[3]
    at = change[2] + 1
  end
  parts[#parts + 1] = sub(text, at)
  local length = body:setBytes(table.concat(parts))
  handle:headers():replace("content-length", tostring(length))
end

-- Returns what the caller sees of an event. Quotes within texts are escaped, so a text cannot look like usage.
local function seen(event, usage)
  local at = find(event, '"usage"', 1, true)
  local first, last = nil, nil
  if at then
    first, last = find(event, '^"usage"[ ]*:[ ]*%b{}', at)
  end
  if not first then
    return event
  end
  if find(event, '"choices"[ ]*:[ ]*%[%]') then
    return usage == "none" and "" or event
  end
  return sub(event, 1, first - 1) .. '"usage":null' .. sub(event, last + 1)
end

function envoy_on_response(handle)
  local places = known(handle)
  local usage = places and places:match("[a-z][a-z ]*$")
  if usage ~= "none" and usage ~= "last" then
    return
  end
  if not find(handle:headers():get("content-type") or "", "^text/event%-stream") then
    return
  end
  -- What the caller sees is shorter. Clients that know a length wait for the rest.
  handle:headers():remove("content-length")
  local rest = ""
  for chunk in handle:bodyChunks() do
    local length = chunk:length()
    if length == 0 then
      chunk:setBytes(rest)
      rest = ""
    else
      local text = rest .. chunk:getBytes(0, length)
      local parts, at = {}, 1
      local first, last = find(text, "\r?\n\r?\n", at)
      while first do
        parts[#parts + 1] = seen(sub(text, at, last), usage)
        at = last + 1
        first, last = find(text, "\r?\n\r?\n", at)
      end
      rest = sub(text, at)
      if #rest > LARGEST_EVENT then
        parts[#parts + 1] = rest
        rest = ""
      end
      chunk:setBytes(table.concat(parts))
    end
  end
end
