"""The scripts with which the ledger changes counters in Valkey, each at once for all counters of a slot.

A slot has the counters of one team, or of one model with budgets: ``{TEAM}`` or ``{/MODEL}`` is the hash tag
of all its keys, as scripts of a cluster need (https://valkey.io/topics/cluster-spec/#hash-tags). Keys of a
script: first the hash of open reservations, the set of counters that the next checkpoint has to write, then
one hash per counter. Fields of a counter:

- ``d``, ``D``: first second of the day, and what was spent in it; ``e``, ``E``: the same of the day before
- ``m``, ``M``, ``p``, ``P``: the same of the month and the month before
- ``R``, ``o``: what is reserved and not settled, and in how many requests
- ``n``, ``r``, ``t``: minute, its requests and its tokens

Spending only grows within its day, so copies of it are merged by their maximum. The first counter has ``g``
too, the generation: a number that is drawn when the slot is filled from its checkpoint. A slot without it has
lost its data, or is new, and admits nothing.

Time is the server's (``TIME``), and days and months are those that the caller passes, if the server's time is
in them. A clock that goes back opens no window that was closed: the later window stays. A caller whose clock
is not the server's passes 0: then no window begins, and those that are open count.

Lua's numbers are exact to 2^53 nano-dollars (9 million US dollars); larger limits are compared with a
relative error of 1e-16, and sums are written by ``HINCRBY``, which is exact to 2^63.
"""

from __future__ import annotations

from typing import Final

_COMMON: Final = """
local now = tonumber(redis.call('TIME')[1])
local minute = math.floor(now / 60)
local function number(text) return tonumber(text or 0) or 0 end
local function whole(value) return string.format('%.0f', value) end
-- Counters of projects and keys are forgotten when no checkpoint has them any more. The first one stays.
local function keep(key) if key ~= KEYS[3] then redis.call('EXPIRE', key, 6048000) end end
local function add(list, more) for _, each in ipairs(more) do list[#list + 1] = each end end
"""

#: Reserves. ARGV: first second of the day and after it, first second of the month, identifier, nano-dollars,
#: tokens, value of the reservation, and for each counter its limits: nano-dollars per day and month, requests
#: and tokens per minute, requests at once (-1: none).
#: Returns {1, generation, now}; {0, counter, limit (1 to 5), used, now}; {-1, now} if the windows are not
#: those of the server's time; or {-2, now} if the slot has to be filled.
RESERVE: Final = (
    _COMMON
    + """
local day, day_end, month = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if now < day or now >= day_end then return {-1, now} end
local generation = redis.call('HGET', KEYS[3], 'g')
if not generation then return {-2, now} end
local amount, tokens = tonumber(ARGV[5]), tonumber(ARGV[6])
local found = {}
for i = 3, #KEYS do
  local v = redis.call('HMGET', KEYS[i], 'd', 'D', 'm', 'M', 'R', 'n', 'r', 't', 'o')
  local at = 7 + (i - 3) * 5
  local d, m, n = number(v[1]), number(v[3]), number(v[6])
  local spent = {d >= day and number(v[2]) or 0, m >= month and number(v[4]) or 0}
  local reserved, same = number(v[5]), n == minute
  local requests, used = same and number(v[7]) or 0, same and number(v[8]) or 0
  for w = 1, 2 do
    local limit = tonumber(ARGV[at + w])
    if limit >= 0 and spent[w] + reserved + amount > limit then
      return {0, i - 2, w, whole(spent[w] + reserved), now}
    end
  end
  local of_requests, of_tokens = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local open, at_once = number(v[9]), tonumber(ARGV[at + 5])
  if of_requests >= 0 and requests + 1 > of_requests then return {0, i - 2, 3, whole(requests), now} end
  if of_tokens >= 0 and used + tokens > of_tokens then return {0, i - 2, 4, whole(used), now} end
  if at_once >= 0 and open + 1 > at_once then return {0, i - 2, 5, whole(open), now} end
  found[i] = {d, m, requests, used, v[2] or 0, v[4] or 0, open}
end
for i = 3, #KEYS do
  local f = found[i]
  local set = {'n', minute, 'r', f[3] + 1, 't', whole(f[4] + tokens), 'o', f[7] + 1}
  if f[1] < day then add(set, {'e', whole(f[1]), 'E', f[5], 'd', whole(day), 'D', 0}) end
  if f[2] < month then add(set, {'p', whole(f[2]), 'P', f[6], 'm', whole(month), 'M', 0}) end
  redis.call('HSET', KEYS[i], unpack(set))
  if f[1] < day then keep(KEYS[i]) end
  redis.call('HINCRBY', KEYS[i], 'R', ARGV[5])
end
redis.call('HSET', KEYS[1], ARGV[4], ARGV[7])
return {1, generation, now}
"""
)

# Adds a cost to the windows in which its request was admitted, also if they have passed since. One that was
# not reserved may be the first of a window that has passed.
_CHARGE: Final = """
local function charge(key, cost, of_day, of_month)
  local v = redis.call('HMGET', key, 'd', 'D', 'm', 'M', 'e', 'p')
  local d, m, e, p = number(v[1]), number(v[3]), number(v[5]), number(v[6])
  if of_day == 0 then of_day, of_month = d, m end
  if d < of_day then
    redis.call('HSET', key, 'e', whole(d), 'E', v[2] or 0, 'd', whole(of_day), 'D', 0)
    d, e = of_day, d
    keep(key)
  end
  if m < of_month then
    redis.call('HSET', key, 'p', whole(m), 'P', v[4] or 0, 'm', whole(of_month), 'M', 0)
    m, p = of_month, m
  end
  if d == of_day then redis.call('HINCRBY', key, 'D', cost)
  elseif e == of_day then redis.call('HINCRBY', key, 'E', cost)
  elseif e < of_day then redis.call('HSET', key, 'e', whole(of_day), 'E', cost) end
  if m == of_month then redis.call('HINCRBY', key, 'M', cost)
  elseif p == of_month then redis.call('HINCRBY', key, 'P', cost)
  elseif p < of_month then redis.call('HSET', key, 'p', whole(of_month), 'P', cost) end
end
local function answer_of()
  local answer = {1, now}
  for i = 3, #KEYS do
    local after = redis.call('HMGET', KEYS[i], 'd', 'D', 'm', 'M', 'R', 'n', 'r', 't')
    for j = 1, 8 do answer[#answer + 1] = after[j] or '0' end
    redis.call('SADD', KEYS[2], KEYS[i])
  end
  return answer
end
"""

#: Settles a reservation once. ARGV: identifier, cost, tokens really used, generation at the time of the
#: reservation, and the day, month and minute of the reservation. A reservation whose generation is not the
#: slot's may have been lost with the data: its cost is added.
#: Returns {1, now, and of each counter d, D, m, M, R, n, r, t}; {0} if it was settled before; or {-2, now} if
#: the slot has to be filled.
SETTLE: Final = (
    _COMMON
    + _CHARGE
    + """
local generation = redis.call('HGET', KEYS[3], 'g')
if not generation then return {-2, now} end
local kept = redis.call('HGET', KEYS[1], ARGV[1])
local reserved, tokens_before = 0, 0
if kept then
  redis.call('HDEL', KEYS[1], ARGV[1])
  local a, b = string.match(kept, '^(%d+) (%d+)')
  reserved, tokens_before = tonumber(a), tonumber(b)
elseif ARGV[4] == generation then
  return {0}
end
local tokens, of_day, of_month = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])
for i = 3, #KEYS do
  charge(KEYS[i], ARGV[2], of_day, of_month)
  -- A counter whose budget is newer than the reservation does not have it.
  if kept then
    if redis.call('HINCRBY', KEYS[i], 'R', whole(-reserved)) < 0 then redis.call('HSET', KEYS[i], 'R', 0) end
    if redis.call('HINCRBY', KEYS[i], 'o', -1) < 0 then redis.call('HSET', KEYS[i], 'o', 0) end
  end
  if kept and number(redis.call('HGET', KEYS[i], 'n')) == tonumber(ARGV[7]) then
    -- A reservation that was registered again is not in the count of its minute.
    if redis.call('HINCRBY', KEYS[i], 't', whole(tokens - tokens_before)) < 0 then
      redis.call('HSET', KEYS[i], 't', 0)
    end
  end
end
return answer_of()
"""
)

#: Adds the cost of requests that had no reservation, once. The first key is that of the position of a
#: replica's log up to which they are counted. ARGV: position, cost, tokens, requests, day and month.
#: Returns as `SETTLE` does.
CHARGE: Final = (
    _COMMON
    + _CHARGE
    + """
if not redis.call('HGET', KEYS[3], 'g') then return {-2, now} end
if number(redis.call('GET', KEYS[1])) >= tonumber(ARGV[1]) then return {0} end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 604800)
for i = 3, #KEYS do
  charge(KEYS[i], ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6]))
  if number(redis.call('HGET', KEYS[i], 'n')) ~= minute then
    redis.call('HSET', KEYS[i], 'n', minute, 'r', 0, 't', 0)
  end
  redis.call('HINCRBY', KEYS[i], 'r', ARGV[4])
  redis.call('HINCRBY', KEYS[i], 't', ARGV[3])
end
return answer_of()
"""
)

#: Registers a reservation again that was lost with the data. Keys and ARGV: identifier, value, nano-dollars.
RESTORE: Final = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
for i = 3, #KEYS do
  redis.call('HINCRBY', KEYS[i], 'R', ARGV[3])
  redis.call('HINCRBY', KEYS[i], 'o', 1)
end
return 1
"""

#: Fills a slot. ARGV: a new generation, and for each counter d, D, e, E, m, M, p, P. Each is merged by the
#: maximum, for the later window. Returns the generation. With an empty generation it only merges what another
#: replica still knows.
SEED: Final = (
    _COMMON
    + """
local generation = redis.call('HGET', KEYS[3], 'g')
if generation and ARGV[1] ~= '' then return generation end
local names = {'d', 'D', 'e', 'E', 'm', 'M', 'p', 'P'}
for i = 3, #KEYS do
  local at = 1 + (i - 3) * 8
  for w = 1, 7, 2 do
    local window, spent = number(ARGV[at + w]), ARGV[at + w + 1]
    local v = redis.call('HMGET', KEYS[i], names[w], names[w + 1])
    if number(v[1]) < window or (number(v[1]) == window and number(v[2]) < number(spent)) then
      redis.call('HSET', KEYS[i], names[w], ARGV[at + w], names[w + 1], spent)
    end
  end
  keep(KEYS[i])
end
if ARGV[1] ~= '' then redis.call('HSET', KEYS[3], 'g', ARGV[1]) end
return ARGV[1]
"""
)

#: Tells the other replicas what this one has in progress. Keys: the hash of all replicas. ARGV: name, text.
#: Returns {now, and of each replica name, seconds since it was heard, text}. Those that were not heard for an
#: hour are forgotten.
EXCHANGE: Final = """
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now) .. ARGV[2])
local rows, answer = redis.call('HGETALL', KEYS[1]), {now}
for i = 1, #rows, 2 do
  local at, text = string.match(rows[i + 1], '^(%d+) (.*)$')
  local age = now - tonumber(at)
  if age > 3600 then redis.call('HDEL', KEYS[1], rows[i])
  else
    answer[#answer + 1] = rows[i]
    answer[#answer + 1] = age
    answer[#answer + 1] = text
  end
end
return answer
"""

ALL: Final = (RESERVE, SETTLE, CHARGE, RESTORE, SEED, EXCHANGE)
