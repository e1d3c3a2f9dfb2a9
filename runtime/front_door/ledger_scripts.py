"""The scripts with which the ledger changes counters in Valkey, each at once for all counters of a slot.

A slot has the counters of one team, or of one model with budgets: ``{TEAM}`` or ``{/MODEL}`` is the hash tag
of all its keys, as scripts of a cluster need (https://valkey.io/topics/cluster-spec/#hash-tags). Keys of a
script: first the hash of open reservations, then one hash per counter. Fields of a counter:

- ``d``, ``D``: first second of the day, and what was spent in it; ``e``, ``E``: the same of the day before
- ``m``, ``M``, ``p``, ``P``: the same of the month and the month before
- ``R``: what is reserved and not settled
- ``n``, ``r``, ``t``: minute, its requests and its tokens

Spending only grows within its day, so copies of it are merged by their maximum. The first counter has ``g``
too, the generation: a number that is drawn when the slot is filled from its checkpoint. A slot without it has
lost its data, or is new, and admits nothing.

Time is the server's (``TIME``), and days and months are those that the caller passes, if the server's time is
in them. A clock that goes back opens no window that was closed: the later window stays.

Lua's numbers are exact to 2^53 nano-dollars (9 million US dollars); larger limits are compared with a
relative error of 1e-16, and sums are written by ``HINCRBY``, which is exact to 2^63.
"""

from __future__ import annotations

from typing import Final

_CLOCK: Final = """
local now = tonumber(redis.call('TIME')[1])
local minute = math.floor(now / 60)
local function number(text) return tonumber(text or 0) or 0 end
local function whole(value) return string.format('%.0f', value) end
"""

#: Reserves. ARGV: first second of the day and after it, first second of the month, "1" if the caller insists
#: on them, identifier, nano-dollars, tokens, value of the reservation, and for each counter
#: its limits: nano-dollars per day and month, requests and tokens per minute (-1: none).
#: Returns {1, generation, now}; {0, counter, limit (1 to 4), used, now}; {-1, now} if the windows are not
#: those of the server's time; or {-2, now} if the slot has to be filled.
RESERVE: Final = (
    _CLOCK
    + """
local day, day_end, month, insists = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local function add(list, more) for _, each in ipairs(more) do list[#list + 1] = each end end
if insists ~= '1' and (now < day or now >= day_end) then return {-1, now} end
local generation = redis.call('HGET', KEYS[2], 'g')
if not generation then return {-2, now} end
local amount, tokens = tonumber(ARGV[6]), tonumber(ARGV[7])
local found = {}
for i = 2, #KEYS do
  local v = redis.call('HMGET', KEYS[i], 'd', 'D', 'm', 'M', 'R', 'n', 'r', 't')
  local at = 8 + (i - 2) * 4
  local d, m, n = number(v[1]), number(v[3]), number(v[6])
  local spent = {d >= day and number(v[2]) or 0, m >= month and number(v[4]) or 0}
  local reserved, same = number(v[5]), n == minute
  local requests, used = same and number(v[7]) or 0, same and number(v[8]) or 0
  local limits = {}
  for w = 1, 4 do limits[w] = tonumber(ARGV[at + w]) end
  for w = 1, 2 do
    if limits[w] >= 0 and spent[w] + reserved + amount > limits[w] then
      return {0, i - 1, w, whole(spent[w] + reserved), now}
    end
  end
  if limits[3] >= 0 and requests + 1 > limits[3] then return {0, i - 1, 3, whole(requests), now} end
  if limits[4] >= 0 and used + tokens > limits[4] then return {0, i - 1, 4, whole(used), now} end
  found[i] = {d, m, requests, used, v[2] or 0, v[4] or 0}
end
for i = 2, #KEYS do
  local f = found[i]
  local set = {'n', minute, 'r', f[3] + 1, 't', whole(f[4] + tokens)}
  if f[1] < day then
    add(set, {'e', whole(f[1]), 'E', f[5], 'd', whole(day), 'D', 0})
  end
  if f[2] < month then
    add(set, {'p', whole(f[2]), 'P', f[6], 'm', whole(month), 'M', 0})
  end
  redis.call('HSET', KEYS[i], unpack(set))
  redis.call('HINCRBY', KEYS[i], 'R', ARGV[6])
end
redis.call('HSET', KEYS[1], ARGV[5], ARGV[8])
return {1, generation, now}
"""
)

#: Settles. ARGV: identifier, cost, tokens really used, generation at the time of the reservation, and the
#: day, month and minute of the reservation. An identifier that was reserved is settled once. One whose
#: generation is not the slot's was lost with the data: its cost is added. Generation "-": nothing was
#: reserved; the caller sees to it that it settles once.
#: Returns {1, now, and of each counter d, D, m, M, n, r, t}; {0} if it was settled before; or {-2, now} if
#: the slot has to be filled.
SETTLE: Final = (
    _CLOCK
    + """
local generation = redis.call('HGET', KEYS[2], 'g')
if not generation then return {-2, now} end
local reserved, tokens_before = 0, 0
if ARGV[4] == generation then
  local kept = redis.call('HGET', KEYS[1], ARGV[1])
  if not kept then return {0} end
  redis.call('HDEL', KEYS[1], ARGV[1])
  local a, b = string.match(kept, '^(%d+) (%d+)')
  reserved, tokens_before = tonumber(a), tonumber(b)
end
local is_new = ARGV[4] == '-'
local cost, tokens = ARGV[2], tonumber(ARGV[3])
local of_day, of_month, of_minute = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local answer = {1, now}
for i = 2, #KEYS do
  local v = redis.call('HMGET', KEYS[i], 'd', 'D', 'm', 'M', 'e', 'p', 'n')
  local d, m, n = number(v[1]), number(v[3]), number(v[7])
  if d < of_day then
    redis.call('HSET', KEYS[i], 'e', whole(d), 'E', v[2] or 0, 'd', whole(of_day), 'D', 0)
    v[5] = d; d = of_day
  end
  if m < of_month then
    redis.call('HSET', KEYS[i], 'p', whole(m), 'P', v[4] or 0, 'm', whole(of_month), 'M', 0)
    v[6] = m; m = of_month
  end
  if d == of_day then redis.call('HINCRBY', KEYS[i], 'D', cost)
  elseif number(v[5]) == of_day then redis.call('HINCRBY', KEYS[i], 'E', cost) end
  if m == of_month then redis.call('HINCRBY', KEYS[i], 'M', cost)
  elseif number(v[6]) == of_month then redis.call('HINCRBY', KEYS[i], 'P', cost) end
  if reserved > 0 then redis.call('HINCRBY', KEYS[i], 'R', whole(-reserved)) end
  if is_new then
    if n ~= minute then redis.call('HSET', KEYS[i], 'n', minute, 'r', 0, 't', 0) end
    redis.call('HINCRBY', KEYS[i], 'r', 1)
    redis.call('HINCRBY', KEYS[i], 't', whole(tokens))
  elseif n == of_minute then
    redis.call('HINCRBY', KEYS[i], 't', whole(tokens - tokens_before))
  end
  local after = redis.call('HMGET', KEYS[i], 'd', 'D', 'm', 'M', 'n', 'r', 't')
  for j = 1, 7 do answer[#answer + 1] = after[j] or '0' end
end
return answer
"""
)

#: Fills a slot. ARGV: a new generation, and for each counter d, D, e, E, m, M, p, P. Each is merged by the
#: maximum, for the later window. Returns the generation.
SEED: Final = """
local function number(text) return tonumber(text or 0) or 0 end
local generation = redis.call('HGET', KEYS[2], 'g')
if generation then return generation end
for i = 2, #KEYS do
  local at = 1 + (i - 2) * 8
  local names = {'d', 'D', 'e', 'E', 'm', 'M', 'p', 'P'}
  for w = 1, 7, 2 do
    local window, spent = number(ARGV[at + w]), ARGV[at + w + 1]
    local v = redis.call('HMGET', KEYS[i], names[w], names[w + 1])
    if number(v[1]) < window or (number(v[1]) == window and number(v[2]) < number(spent)) then
      redis.call('HSET', KEYS[i], names[w], ARGV[at + w], names[w + 1], spent)
    end
  end
end
redis.call('HSET', KEYS[2], 'g', ARGV[1])
return ARGV[1]
"""
