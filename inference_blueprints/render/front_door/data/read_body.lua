-- Reads a request's body once, from left to right, and tells the policy in headers what it must know. Nothing
-- is decoded or written anew: numbers, names and their order stay as the caller sent them. What two readers of
-- JSON could understand differently is refused. Where the model's name and the options of a stream stand in the
-- body is kept for write_body.lua.

local byte, find, sub = string.byte, string.find, string.sub

local LARGEST = @LARGEST@
local LARGE = 1048576
local INVALID = "invalid_request_error"

-- Fields that bound an answer, by path. Engines take the first that is stated. Elsewhere they bound nothing.
local MAXIMA = {
  ["/v1/chat/completions"] = { "max_completion_tokens", "max_tokens" },
  ["/v1/completions"] = { "max_tokens" },
  ["/v1/responses"] = { "max_output_tokens" },
  ["/v1/messages"] = { "max_tokens" },
}
local NUMBERS = { max_tokens = true, max_completion_tokens = true, max_output_tokens = true }
-- Further fields at the top of a body, and the header that each text becomes.
local TEXTS = { prompt_cache_key = "x-door-cache-key", user = "x-door-user" }
local OTHERS = {
  model = true, stream = true, stream_options = true, n = true, best_of = true, n_cmpl = true, prompt = true,
  tools = true, functions = true, min_tokens = true, n_predict = true, chat_template_kwargs = true,
  chat_template_args = true,
}
-- Fields with which a prompt may have more tokens than its bytes: what the engine has stored, and what it is told of
-- templates and images. docs/front-door-budgets.md says for each field of an engine why it passes no bound.
local LONGER = {
  previous_response_id = true, conversation = true, session_params = true, prompt_embeds = true, chat_template = true,
  mm_processor_kwargs = true, media_io_kwargs = true, images_config = true, max_dynamic_patch = true,
  min_dynamic_patch = true, disaggregated_params = true,
}
for name in pairs(LONGER) do
  OTHERS[name] = true
end
local PROMPTS = { prompt = true, prompt_embeds = true }
-- Definitions of tools. A template that indents them writes more tokens for each byte the deeper they are nested: beyond
-- this depth of the body, nobody here knows how many.
local TOOLS = { tools = true, functions = true }
local DEEPEST_TOOL = 40
-- Paths whose streams have usage only if it is asked for.
local ASKED = { ["/v1/chat/completions"] = true, ["/v1/completions"] = true }
-- Names of fields of a prompt that stand for one image, sound or film each. Nobody here knows the length of the last
-- two kinds.
local MEDIA = { image_url = "image", image_embeds = "image", video_url = "long", audio_url = "long",
  input_audio = "long" }

local function refuse(handle, status, code, param, message)
  handle:streamInfo():dynamicMetadata():set("door", "refused", "true")
  param = param and '"' .. param .. '"' or "null"
  handle:respond(
    { [":status"] = status, ["content-type"] = "application/json" },
    '{"error":{"message":"' .. message .. '","type":"' .. INVALID .. '","param":' .. param
      .. ',"code":"' .. code .. '"}}'
  )
end

-- Returns what the policy must know, or nil with the name of the wrong field and what is wrong.
local function scan(text)
  local length = #text
  local at = find(text, "[^ \t\r\n]")
  if not at or byte(text, at) ~= 123 then
    return nil, nil, "the body must be one JSON object"
  end
  local found = {}
  local depth, objects, names, expects_name, top = 0, {}, {}, false, nil
  local value_start, media, media_bytes, prompts, has_long = nil, 0, 0, 0, false
  local opened = at
  local escape = find(text, "\\", 1, true) -- the first backslash that is not read yet
  repeat
    local c = byte(text, at)
    if c == 34 then
      -- Ends of texts are looked for by a plain search, which reads many bytes at once.
      local start, last = at, find(text, '"', at + 1, true)
      if escape and escape <= start then
        escape = find(text, "\\", start + 1, true)
      end
      local escaped = false
      while last and escape and escape < last do
        escaped = true
        -- What follows a backslash belongs to it.
        if escape + 1 == last then
          last = find(text, '"', last + 1, true)
        end
        escape = find(text, "\\", escape + 2, true)
      end
      if not last then
        return nil, nil, "the body ends within a text"
      end
      at = last
      if expects_name then
        if escaped and find(sub(text, start, at), "\\u00[4-7]") then
          return nil, nil, "names of fields must not have letters as escapes"
        end
        local size = at - start - 1
        if depth == 1 then
          top = size <= 24 and sub(text, start + 1, at - 1) or ""
          names[1] = top
        elseif size <= 12 then
          local name = sub(text, start + 1, at - 1)
          names[depth] = name
          if MEDIA[name] then
            media = media + 1
            has_long = has_long or MEDIA[name] == "long"
          end
        else
          names[depth] = ""
        end
      else
        local size = at - start - 1
        if depth == 2 and PROMPTS[top] and not objects[2] then
          prompts = prompts + 1
        elseif depth > 2 and size > 4 then
          local name = objects[depth] and names[depth]
          if name == "type" then
            if size == 5 and sub(text, start + 1, at - 1) == "image" then
              media = media + 1
            end
          elseif (name == "image_url" and depth == 5 or name == "url" and depth == 6 and MEDIA[names[5]])
            and names[3] == "content" and (top == "messages" or top == "input")
            and sub(text, start + 1, start + 5) == "data:" then
            -- A part of a message. Elsewhere, as in what a tool is called with, it is text for the model.
            media_bytes = media_bytes + size
          end
        end
      end
    elseif c == 58 then
      expects_name = false
      if depth == 1 then
        value_start = at + 1
      end
    elseif c == 44 or c == 125 or c == 93 then
      if depth == 1 and value_start then
        if NUMBERS[top] or TEXTS[top] or OTHERS[top] then
          if found[top] then
            return nil, top, "the field comes twice"
          end
          local first = find(text, "[^ \t\r\n]", value_start)
          local last = at - 1
          while find(text, "^[ \t\r\n]", last) do
            last = last - 1
          end
          if last < first then
            return nil, top, "the field has no value"
          end
          found[top] = { first, last }
        end
        value_start = nil
      end
      if c == 44 then
        expects_name = objects[depth]
      else
        if objects[depth] ~= (c == 125) then
          return nil, nil, "brackets of the body do not match"
        end
        depth = depth - 1
        expects_name = false
      end
    elseif c == 123 or c == 91 then
      if c == 91 and depth == 2 and PROMPTS[top] then
        prompts = prompts + 1
      end
      depth = depth + 1
      has_long = has_long or depth > DEEPEST_TOOL and TOOLS[top] or false
      objects[depth] = c == 123
      names[depth] = nil
      expects_name = c == 123
    elseif not c then
      return nil, nil, "the body ends within an object"
    end
    at = at + 1
  until depth == 0
  if find(text, "[^ \t\r\n]", at) then
    return nil, nil, "the body must be one JSON object, nothing may follow it"
  end
  return { fields = found, opened = opened, media = media, media_bytes = media_bytes, prompts = prompts,
    is_longer = has_long }
end

local function raw(text, place)
  local value = place and sub(text, place[1], place[2])
  return value ~= "null" and value or nil
end

-- Returns a text of the body that may be a header: printable ASCII. Escaped slashes are those of PHP.
local function plain(value)
  if not value or byte(value) ~= 34 or #value > 514 then
    return nil
  end
  value = sub(value, 2, -2):gsub("\\/", "/")
  return not find(value, "[^!-~ ]") and not find(value, "\\", 1, true) and value or nil
end

local function whole(value)
  return find(value, "^[0-9]+$") and #value <= 9 and tonumber(value) or nil
end

local function size_of(place)
  return place and place[2] - place[1] + 1 or 0
end

-- Returns the largest answer that a body allows, as text; nil if it states none, and "0" if what it states may bound
-- nothing: engines take 0 for no maximum, some take null of the first field for none, an answer of at least so many
-- tokens refuses a smaller maximum, and llama.cpp takes n_predict before all others.
local function stated_maximum(text, fields, names)
  local most = nil
  local is_unclear = raw(text, fields.n_predict) ~= nil
  for _, name in ipairs(names) do
    local value = tonumber(raw(text, fields[name]) or "")
    if value then
      most = math.max(most or 0, value)
      is_unclear = is_unclear or value == 0
    end
  end
  local first, least = fields[names[1]], raw(text, fields.min_tokens)
  if most and first and not raw(text, first) or not most and least and least ~= "0" then
    is_unclear = true
  end
  return is_unclear and "0" or most and string.format("%.0f", most)
end

local function is_longer(text, facts)
  for name, place in pairs(facts.fields) do
    if LONGER[name] and raw(text, place) then
      return true
    end
  end
  for _, name in ipairs({ "chat_template_kwargs", "chat_template_args" }) do
    local value = raw(text, facts.fields[name])
    if value and find(value, '"chat_template"', 1, true) then
      return true
    end
  end
  return facts.is_longer
end

-- Returns which usage the caller of a stream wants to see: that of no event, of the last, or of each.
local function wanted(options)
  if not options or not find(options, '"include_usage"[ \t\r\n]*:[ \t\r\n]*true') then
    return "none"
  end
  return find(options, '"continuous_usage_stats"[ \t\r\n]*:[ \t\r\n]*true') and "each" or "last"
end

local function has(headers, name)
  local value = headers:get(name)
  return value and value ~= ""
end

-- Returns the address of the caller, without brackets and port.
local function address_of(handle)
  local address = handle:streamInfo():downstreamRemoteAddress()
  return (address:gsub("^%[", ""):gsub("%]?:%d+$", ""))
end

local function read(handle)
  local headers = handle:headers()
  -- The policy counts wrong keys by address: that of the connection, or what a trusted load balancer says of it.
  headers:replace("x-door-address", address_of(handle))
  if headers:get(":method") ~= "POST" then
    return
  end
  if not (has(headers, "authorization") or has(headers, "x-api-key") or has(headers, "x-door-token")) then
    return refuse(handle, "401", "invalid_api_key", nil,
      "the request has no API key; send it as Authorization: Bearer KEY")
  end
  local length = tonumber(headers:get("content-length") or "")
  if not length then
    return refuse(handle, "411", "length_required", nil, "the request must state its content-length")
  elseif length > LARGEST then
    return refuse(handle, "413", "request_too_large", nil,
      "the body has " .. string.format("%.0f", length) .. " bytes, the maximum is @LARGEST@")
  end
  local kind = (headers:get("content-type") or ""):lower()
  if not find(kind, "^application/json[ \t]*$") and not find(kind, "^application/json[ \t]*;") then
    return refuse(handle, "415", "unsupported_media_type", nil, "content-type must be application/json")
  end
  local coding = headers:get("content-encoding")
  if coding and coding ~= "identity" then
    return refuse(handle, "415", "unsupported_media_type", nil, "the body must not be compressed")
  end
  local body = handle:body()
  if not body then
    return refuse(handle, "400", "bad_json", nil, "the request needs a body: one JSON object")
  end
  local text = body:getBytes(0, body:length())
  local facts, field, problem = scan(text)
  if not facts then
    return refuse(handle, "400", "bad_json", field, problem)
  end
  local fields = facts.fields
  local model = raw(text, fields.model)
  if not model then
    return refuse(handle, "400", "missing_required_parameter", "model",
      "the body must name a model; GET /v1/models lists those that the caller may use")
  end
  model = plain(model)
  if not model or #model == 0 or find(model, " ", 1, true) then
    return refuse(handle, "404", "model_not_found", "model",
      "there is no model of this name; GET /v1/models lists those that the caller may use")
  end
  headers = handle:headers() -- what was got before the body cannot be used after it
  local stream = raw(text, fields.stream) or "false"
  if stream ~= "true" and stream ~= "false" then
    return refuse(handle, "400", "invalid_value", "stream", "the field must be true or false")
  end
  for name in pairs(NUMBERS) do
    local value = raw(text, fields[name])
    if value and not whole(value) then
      return refuse(handle, "400", "invalid_value", name, "the field must be a whole number below a billion")
    end
  end
  local path = headers:get(":path"):match("^[^?]*")
  local maxima = MAXIMA[path]
  local maximum = maxima and stated_maximum(text, fields, maxima)
  if maximum then
    headers:replace("x-door-max-tokens", maximum)
  end
  local answers = 1
  for _, name in ipairs({ "n", "best_of", "n_cmpl" }) do
    local value = raw(text, fields[name])
    if value then
      local number = whole(value)
      if not number or number < 1 then
        return refuse(handle, "400", "invalid_value", name, "the field must be a whole number from 1")
      end
      answers = math.max(answers, number)
    end
  end
  answers = answers * math.max(facts.prompts, 1)
  for name, header in pairs(TEXTS) do
    local value = plain(raw(text, fields[name]))
    if value then
      headers:replace(header, value)
    end
  end
  headers:replace("x-door-model", model)
  headers:replace("x-door-stream", stream)
  headers:replace("x-door-n", string.format("%.0f", answers))
  -- A chat template may write definitions of tools with indents or tags: four tokens for each of their bytes.
  local tools = size_of(fields.tools) + size_of(fields.functions)
  headers:replace("x-door-bytes", string.format("%.0f", #text - facts.media_bytes + 3 * tools))
  if facts.media > 0 then
    headers:replace("x-door-images", string.format("%.0f", facts.media))
    headers:replace("x-door-media-bytes", string.format("%.0f", facts.media_bytes))
  end
  if is_longer(text, facts) then
    headers:replace("x-door-stored", "true")
  end
  local options = fields.stream_options or { 0, 0 }
  local usage = "as it is"
  if stream == "true" and ASKED[path] then
    usage = wanted(raw(text, fields.stream_options))
  end
  local name = maxima and maxima[1] or "-"
  local limit = fields[name] or { 0, 0 }
  local places = string.format("%.0f %.0f %.0f %.0f %.0f %.0f %.0f %s|%s", facts.opened, fields.model[1],
    fields.model[2], options[1], options[2], limit[1], limit[2], name, usage)
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set("door", "stream", stream)
  metadata:set("door", "choices", string.format("%.0f", answers))
  metadata:set("door", "places", places)
end

function envoy_on_request(handle)
  local length = tonumber(handle:headers():get("content-length") or "") or 0
  read(handle)
  if length > LARGE then
    collectgarbage() -- Lua would keep copies of large bodies until its own memory has doubled
  end
end
