-- What the scripts that change a record share. ARGV: 1 name of the breaker, 2
-- epoch to begin with, 3 channel, 4 known, 5 keep, 6 worker, 7 reason, 8 nth, 9
-- cooldown, 10 left, 11 quorum; then what each has besides.
local name, known, keep = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local worker, quorum = ARGV[6], tonumber(ARGV[11])
local field = 'k' .. name

local function fresh()
  return {version = 1, revision = 0, generation = 0, open = 0, opened = 0, cooldown = 0, nth = 0, reason = 0, good = 0,
    bad = 0, worker = '-', holder = '-', held = 0, lease = 0, forced = 0, note = '-', expires = 0, reports = '-'}
end
local text = redis.call('HGET', KEYS[1], field)
local r = text and parse(text)
if r and r.expires <= now then r = nil end
local missing = not r
if missing then r = fresh() end
local was = {generation = r.generation, forced = r.forced}

-- The clock may have been put back since the lock was taken: it is held for its
-- whole length once more then.
local function locked()
  if r.holder == '-' then return false end
  if r.held > now then r.held = now end
  return now < r.held + r.lease
end

local function unlock() r.holder, r.held, r.lease = '-', 0, 0 end

local revised = false
local function revise()
  if revised then return end
  revised = true
  if last < known then last = known end
  if last < now then last = now end
  last = last + 1
  r.revision = last
end

local function open(left)
  revise()
  local cooldown = tonumber(ARGV[9])
  r.open, r.opened, r.cooldown = 1, now - (cooldown - left), cooldown
  r.nth, r.reason, r.worker = tonumber(ARGV[8]), tonumber(ARGV[7]), worker
  r.good, r.bad, r.reports = 0, 0, '-'
  unlock()
  r.generation = r.revision
end

-- The reports but worker's; those that are over are left out.
local function others()
  local kept, n = {}, 0
  for w, ends in string.gmatch(r.reports, '([^=,]+)=(%d+)') do
    if w ~= worker and tonumber(ends) > now then
      n = n + 1
      kept[n] = w .. '=' .. ends
    end
  end
  return kept, n
end

local function report()
  if quorum <= 1 then return true end
  local kept, n = others()
  local left = tonumber(ARGV[10])
  kept[n + 1] = worker .. '=' .. whole(now + left + math.floor((keep - left) / 2))
  r.reports = table.concat(kept, ',')
  return n + 1 >= quorum
end

local function withdraw()
  local kept, n = others()
  if n == 0 then r.reports = '-' else r.reports = table.concat(kept, ',') end
end

-- A key lives for as long as the last of its records.
local function extend(key)
  local ms = math.ceil(keep / 1000)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end

-- What has expired goes. Eight are looked at with each change, so there is seldom
-- more of it than an eighth of all, wherever it stands in the order.
local function sweep()
  for _, other in ipairs(some()) do
    local old = redis.call('HGET', KEYS[1], 'k' .. other)
    local o = old and parse(old)
    if not o or o.expires <= now then
      redis.call('HDEL', KEYS[1], 'k' .. other)
      redis.call('ZREM', KEYS[2], other)
    end
  end
end

local function answer(changed)
  if changed then
    revise()
    if not epoch then epoch = ARGV[2] end
    if r.expires < now + keep then r.expires = now + keep end
    redis.call('HSET', KEYS[1], 'm', epoch .. ' ' .. whole(last), field, line(r))
    redis.call('ZADD', KEYS[2], whole(last), name)
    sweep()
    extend(KEYS[1])
    extend(KEYS[2])
    if r.generation ~= was.generation or r.forced ~= was.forced then redis.pcall('PUBLISH', ARGV[3], whole(last)) end
  elseif missing then
    return {whole(now), '0', ''}
  end
  return {whole(now), epoch, line(r)}
end
