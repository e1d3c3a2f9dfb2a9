-- Writes the served name of the model into the body, and asks the engine of a stream for its usage in each
-- event: a stream that a caller cuts is charged up to there. Removes what the door knows from the headers.

local sub = string.sub

local USAGE = '{"include_usage":true,"continuous_usage_stats":true}'
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
  for prefix, _ in pairs(PREFIXES) do
    if sub(name, 1, #prefix) == prefix then
      return true
    end
  end
  return false
end

local function strip(headers)
  local names = {}
  for name, value in pairs(headers) do
    local own = sub(name, 1, 7) == "x-door-" and name ~= "x-door-target" or sub(name, 1, 8) == "x-envoy-"
    if own or is_routing(name, value) then
      names[#names + 1] = name
    end
  end
  for _, name in ipairs(names) do
    headers:remove(name)
  end
  for _, name in ipairs(REMOVED) do
    headers:remove(name)
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("x-door-target") == "door-policy" then
    return -- the policy answers itself, and asks who the caller is
  end
  local served = headers:get("x-door-served")
  strip(headers)
  local facts = handle:streamInfo():dynamicMetadata():get("door")
  if not facts or not facts.places then
    return
  end
  local opened, model_first, model_last, options_first, options_last =
    facts.places:match("^(%d+) (%d+) (%d+) (%d+) (%d+)$")
  opened, model_first, model_last = tonumber(opened), tonumber(model_first), tonumber(model_last)
  options_first, options_last = tonumber(options_first), tonumber(options_last)
  local body = handle:body()
  local text = body:getBytes(0, body:length())
  local changes = {}
  if served then
    changes[#changes + 1] = { model_first, model_last, '"' .. served .. '"' }
  end
  if facts.stream == "true" then
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
