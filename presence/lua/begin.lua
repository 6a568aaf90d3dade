-- Begins the session at its new holder. KEYS: record, unsettled, spaces, cancelled, lanes. ARGV: epoch.
-- Returns {'ok', clean, record}, {'deposed'} or {'unsettled'}.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'begun', 'clean', 'was_clean')
if r[1] ~= '1' or r[2] ~= ARGV[1] then
  return {'deposed'}
end
if redis.call('HLEN', KEYS[2]) > 0 then
  return {'unsettled'}
end
local clean = r[4] or '0'
if r[3] == ARGV[1] then
  clean = r[5] or '0' -- begun before: its answer was lost on the way
end
redis.call('HSET', KEYS[1], 'begun', ARGV[1], 'was_clean', clean, 'clean', '0')
redis.call('HDEL', KEYS[1], 'grace_until', 'fresh')
return {'ok', clean, record(KEYS[1], KEYS[3], KEYS[4], KEYS[5])}
