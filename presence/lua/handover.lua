-- The old holder writes its positions while the new one waits for it, and is settled with that. KEYS: record, unsettled, spaces.
-- ARGV: epoch, whether a lane gave up, positions. Returns 1, or 0 when nobody waits for it any more.
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then
  return 0
end
local r = redis.call('HMGET', KEYS[1], 'epoch', 'begun')
if r[2] == ARGV[1] then -- only who began last has delivered last
  put_positions(KEYS[1], KEYS[3], 3, micros())
  redis.call('HSET', KEYS[1], 'clean', '1')
end
if ARGV[2] == '1' then
  raise(KEYS[1], 'dirty', int(tonumber(r[1]) - 1))
end
return 1
