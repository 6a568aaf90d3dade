-- Takes a past holder off the unsettled. KEYS: record, unsettled.
-- ARGV: epoch, the past holder's epoch, whether it handed over. Returns {1, those left} or {0}.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return {0}
end
if redis.call('HDEL', KEYS[2], ARGV[2]) == 1 and ARGV[3] == '0' then
  local us = micros()
  raise(KEYS[1], 'dirty', int(tonumber(ARGV[1]) - 1))
  -- What was sent while the id looked online was not noted.
  redis.call('HSET', KEYS[1], 'clean', '0', 'mailed', int(math.floor(us / 1000)))
end
return {1, redis.call('HGETALL', KEYS[2])}
