-- What all scripts begin with. Every time is in microseconds of the server's
-- clock, every number an integer below 2^53.
--
-- KEYS[1] is a hash with a record for each breaker, in fields that begin with
-- "k", and in the field "m" the space's epoch and its last revision. KEYS[2] is a
-- sorted set of the breakers' names by the revision of their last change. Both
-- have one hash tag.
--
-- A record is a line: version revision generation open opened cooldown nth
-- reason good bad worker holder held lease forced note expires reports. Texts are
-- escaped by those who write them; "-" is an empty one. What cannot be read is as
-- if it were not there.
local names = {'version', 'revision', 'generation', 'open', 'opened', 'cooldown', 'nth', 'reason', 'good', 'bad',
  'worker', 'holder', 'held', 'lease', 'forced', 'note', 'expires', 'reports'}
local texts = {worker = true, holder = true, note = true, reports = true}

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local function whole(n) return string.format('%.0f', n) end

local form = '^1 %d+ %d+ [01] %-?%d+ %d+ %d+ %d+ %d+ %d+ %S+ %S+ %d+ %d+ [01] %S+ %d+ %S+$'

-- A number that is one to all who read it, or nil.
local function number(word)
  local n = tonumber(word)
  if n and math.abs(n) < 2 ^ 53 then return n end
end

local function parse(line)
  if not string.find(line, form) then return nil end
  local r, i = {}, 0
  for word in string.gmatch(line, '%S+') do
    i = i + 1
    local name = names[i]
    if not texts[name] then
      r[name] = number(word)
    elseif not string.find((string.gsub(word, '%%%x%x', '')), '%', 1, true) then
      r[name] = word
    end
    if not r[name] then return nil end
  end
  return r
end

local function line(r)
  local words = {}
  for i, name in ipairs(names) do
    if texts[name] then words[i] = r[name] else words[i] = whole(r[name]) end
  end
  return table.concat(words, ' ')
end

-- A space whose keys are of another kind or do not fit each other began anew.
local epoch, last = nil, 0
local function begin()
  local meta = redis.pcall('HGET', KEYS[1], 'm')
  local size = redis.pcall('ZCARD', KEYS[2])
  if type(meta) == 'string' and type(size) == 'number' then
    local e, l = string.match(meta, '^(%d+) (%d+)$')
    if e and number(e) and number(l) and number(e) > 0 and size + 1 == redis.call('HLEN', KEYS[1]) then
      epoch, last = e, tonumber(l)
      return
    end
  end
  if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('DEL', KEYS[1], KEYS[2]) end
end
begin()

-- The names of a few breakers, others each time.
local function some()
  local size = redis.call('ZCARD', KEYS[2])
  if size == 0 then return {} end
  local from = math.max(0, math.min(size - 8, now % size))
  return redis.call('ZRANGE', KEYS[2], from, from + 7)
end
