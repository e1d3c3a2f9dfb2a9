-- Asks the policy who the caller is, before a large body takes memory. Answers with its refusal if it knows nobody.

local CREDENTIALS = { "authorization", "x-api-key", "x-door-token" }

function envoy_on_request(handle)
  local headers = handle:headers()
  local address = handle:streamInfo():downstreamRemoteAddress()
  local asked = {
    [":method"] = "GET",
    [":path"] = "@IDENTIFY@",
    [":authority"] = "policy",
    ["x-door-address"] = (address:gsub("^%[", ""):gsub("%]?:%d+$", "")),
  }
  for _, name in ipairs(CREDENTIALS) do
    asked[name] = headers:get(name)
  end
  local answer, body = handle:httpCall("@POLICY@", asked, "", 2000)
  local status = answer[":status"]
  if status == "200" then
    return
  end
  handle:streamInfo():dynamicMetadata():set("door", "refused", "true")
  local told = { [":status"] = status, ["content-type"] = "application/json", ["retry-after"] = answer["retry-after"] }
  if status ~= "401" and status ~= "403" and status ~= "429" then
    told = { [":status"] = "503", ["content-type"] = "application/json", ["retry-after"] = "1" }
    body = '@NO_DECISION@'
  end
  handle:respond(told, body)
end
