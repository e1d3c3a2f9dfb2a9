-- Writes the served name of the model into the body, and the largest answer if the policy says one. Asks the engine
-- of a stream for its usage in each event: a stream that a caller cuts is charged up to there. Keeps the usage of
-- streams for the access log, and takes it out of events if the caller did not ask for it. Removes what the door
-- knows from the headers.

local byte, find, sub = string.byte, string.find, string.sub

local USAGE = '{"include_usage":true,"continuous_usage_stats":true}'
-- Largest event that is kept until it is whole. What is larger is passed on as it is, and not counted.
local LARGE = 1048576
local LARGEST_EVENT = 1048576
-- Headers that choose a worker, a priority or a queue; those that choose nothing for others; and those of batch,
-- which only lower its own priority.
local PREFIXES = @PREFIXES@
local HARMLESS = @HARMLESS@
local EXACT = @EXACT@
-- The usage of a compressed answer could not be read, so none is asked for. Envoy has answered an expectation that it
-- knows, and servers refuse others in a form of their own.
local REMOVED = {
  "authorization", "x-api-key", "cookie", "openai-organization", "openai-project", "accept-encoding", "expect"
}

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

local function write(handle)
  local headers = handle:headers()
  if headers:get("x-door-target") == "@POLICY@" then
    return -- the policy answers itself, and asks who the caller is
  end
  local served, maximum = headers:get("x-door-served"), headers:get("x-door-maximum")
  strip(headers)
  local places = known(handle)
  if not places then
    return
  end
  local opened, model_first, model_last, options_first, options_last, limit_first, limit_last, limit, usage =
    places:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)|(.*)$")
  opened, model_first, model_last = tonumber(opened), tonumber(model_first), tonumber(model_last)
  options_first, options_last = tonumber(options_first), tonumber(options_last)
  limit_first, limit_last = tonumber(limit_first), tonumber(limit_last)
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
  if maximum and limit ~= "-" then
    if limit_first > 0 then
      changes[#changes + 1] = { limit_first, limit_last, maximum }
    else
      changes[#changes + 1] = { opened + 1, opened, '"' .. limit .. '":' .. maximum .. "," }
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

function envoy_on_request(handle)
  local length = tonumber(handle:headers():get("content-length") or "") or 0
  write(handle)
  if length > LARGE then
    collectgarbage() -- Lua would keep copies of large bodies until its own memory has doubled
  end
end

-- Returns where the usage ends whose name begins at a place, if it is the last field of the document and has numbers,
-- and at most one object of numbers, as engines write it. A bracket that ends just before the document's own end is
-- that of one of its fields. Letters between two quotes with a colon behind them are a name, and no end of a text with
-- the begin of another: so what is counted are brackets, and not text.
local function last_field(event, at)
  if not find(event, "^[{,]", at - 1) and not find(event, "^[{,] ", at - 2) then
    return nil
  end
  local behind = event:match('^"usage" ?: ?{[^{}]*}() ?}[ \r\n]*$', at)
    or event:match('^"usage" ?: ?{[%w_", :]*"[%w_]+" ?: ?{[%w_", :]*}[%w_", :]*}() ?}[ \r\n]*$', at)
  return behind and behind - 1
end

-- Returns where the usage of an event begins and ends, with its name: that of the document, of its response, or of
-- its message. Text of the model and what it echoes of a request cannot look like it.
local function usage_place(event)
  local named = find(event, '"usage"', 1, true)
  if not named then
    return nil
  end
  local ends = last_field(event, named)
  if ends then
    return named, ends
  end
  local at = find(event, "{", 1, true)
  if not at then
    return nil
  end
  local depth, expects_name, parent = 0, false, nil
  local objects = {}
  repeat
    local c = byte(event, at)
    if c == 34 then
      local start = at
      at = at + 1
      c = byte(event, at)
      while c and c ~= 34 do
        at = at + (c == 92 and 2 or 1)
        c = byte(event, at)
      end
      if expects_name and depth < 3 then
        local name = at - start < 12 and sub(event, start + 1, at - 1)
        if name == "usage" and (depth == 1 or parent == "response" or parent == "message") then
          local first, last = find(event, "^[ ]*:[ ]*%b{}", at + 1)
          if first then
            return start, last
          end
        elseif depth == 1 then
          parent = name
        end
      end
    elseif c == 58 then
      expects_name = false
    elseif c == 44 then
      expects_name = objects[depth]
    elseif c == 123 or c == 91 then
      depth = depth + 1
      objects[depth] = c == 123
      expects_name = c == 123
    elseif c == 125 or c == 93 then
      depth = depth - 1
      expects_name = false
    elseif not c then
      return nil
    end
    at = at + 1
  until depth == 0
  return nil
end

local IN, OTHER_IN = '"prompt_tokens"[ ]*:[ ]*(%d+)', '"input_tokens"[ ]*:[ ]*(%d+)'
local OUT, OTHER_OUT = '"completion_tokens"[ ]*:[ ]*(%d+)', '"output_tokens"[ ]*:[ ]*(%d+)'
local CACHED = '"cached_tokens"[ ]*:[ ]*(%d+)'

-- Keeps the usage of an event for the access log, and returns what the caller sees of the event.
local function counted(event, mode, counts)
  local first, last = usage_place(event)
  if not first then
    return event
  end
  local usage = sub(event, first, last)
  counts["in"] = tonumber(usage:match(IN) or usage:match(OTHER_IN)) or counts["in"]
  counts.out = tonumber(usage:match(OUT) or usage:match(OTHER_OUT)) or counts.out
  if find(usage, '"cached_tokens"', 1, true) then
    counts.cached = tonumber(usage:match(CACHED)) or counts.cached
  end
  if mode ~= "none" and mode ~= "last" then
    return event
  end
  if find(event, '"choices"', 1, true) and find(event, '"choices"[ ]*:[ ]*%[%]') then
    return mode == "none" and "" or event
  end
  return sub(event, 1, first - 1) .. '"usage":null' .. sub(event, last + 1)
end

-- Returns where the first event from a place on ends: at an empty line.
local function event_end(text, at)
  local first = find(text, "\n", at, true)
  while first do
    local behind = byte(text, first + 1)
    if behind == 10 then
      return first + 1
    elseif behind == 13 and byte(text, first + 2) == 10 then
      return first + 2
    end
    first = find(text, "\n", first + 1, true)
  end
  return nil
end

local function write_counts(handle, counts, written)
  local metadata = nil
  for name, value in pairs(counts) do
    if written[name] ~= value then
      metadata = metadata or handle:streamInfo():dynamicMetadata()
      metadata:set("door", name, value)
      written[name] = value
    end
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  if not find(headers:get("content-type") or "", "^text/event%-stream") then
    return
  end
  local places = known(handle)
  if not places then
    return
  end
  local mode = places:match("|(.*)$")
  local changes = mode == "none" or mode == "last"
  if changes then
    -- What the caller sees is shorter. Clients that know a length wait for the rest.
    headers:remove("content-length")
  end
  local counts, written, rest, size = {}, {}, {}, 0
  for chunk in handle:bodyChunks() do
    local length = chunk:length()
    local text = length > 0 and chunk:getBytes(0, length) or ""
    local seen = ""
    if length > 0 and not find(text, "\n", 1, true) then
      rest[#rest + 1] = text
      size = size + length
    else
      local whole = text
      if size > 0 then
        rest[#rest + 1] = text
        whole = table.concat(rest)
        rest, size = {}, 0
      end
      local parts, at, last = {}, 1, event_end(whole, 1)
      while last do
        parts[#parts + 1] = counted(sub(whole, at, last), mode, counts)
        at = last + 1
        last = event_end(whole, at)
      end
      if length == 0 then
        parts[#parts + 1] = sub(whole, at)
      elseif at <= #whole then
        rest[1] = sub(whole, at)
        size = #rest[1]
      end
      seen = table.concat(parts)
      write_counts(handle, counts, written)
    end
    if size > LARGEST_EVENT then
      seen = seen .. table.concat(rest)
      rest, size = {}, 0
    end
    if changes and seen ~= text then
      chunk:setBytes(seen)
    end
  end
end
