-- ARGV: epoch and revision of the mark, most records to return.
-- Returns now, epoch, revision, whole, more, then names and records in turn.
local after, most = tonumber(ARGV[2]), tonumber(ARGV[3])
if not epoch then return {whole(now), '0', '0', 1, 0} end

-- A few records are looked at each time, for somebody else may have spoilt them; then
-- the space begins anew without them, which all notice.
local few, fields = some(), {}
if #few > 0 then
  for i, member in ipairs(few) do fields[i] = 'k' .. member end
  local spoilt = false
  for i, text in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
    if not text or not parse(text) then
      spoilt = true
      redis.call('HDEL', KEYS[1], fields[i])
      redis.call('ZREM', KEYS[2], few[i])
    end
  end
  if spoilt then
    epoch = whole(tonumber(epoch) + 1)
    redis.call('HSET', KEYS[1], 'm', epoch .. ' ' .. whole(last))
  end
end

local all = 0
if ARGV[1] ~= epoch or after > last or after == 0 then all, after = 1, 0 end
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. whole(after), '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
local reply = {whole(now), epoch, whole(last), all, 0}
for i = 1, #found, 2 do
  if i > 2 * most then
    reply[3], reply[5] = whole(tonumber(found[i - 1])), 1
    break
  end
  local text = redis.call('HGET', KEYS[1], 'k' .. found[i])
  local r = text and parse(text)
  if r and now < r.expires then
    reply[#reply + 1] = found[i]
    reply[#reply + 1] = text
  end
end
return reply
