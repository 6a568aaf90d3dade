-- Ends a registration without a connection before its time. KEYS: record. ARGV: principal. Returns {outcome, epoch}: outcome is over, which leaves the rest
-- to the lapsed script; ok where the agent has a session, and so nothing is left to do; none; or owned, where it is another principal's.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'reg_until', 'reg_epoch', 'reg_principal')
local us = micros()
local now = math.floor(us / 1000)
if not r[3] or tonumber(r[3]) <= now then
  return {'none', '0'}
end
if r[5] ~= ARGV[1] then
  return {'owned', '0'}
end
local epoch = following(int(math.max(tonumber(r[2] or '0'), tonumber(r[4]))), us)
redis.call('HSET', KEYS[1], 'reg_epoch', epoch)
if r[1] == '1' or r[1] == '2' then
  unregister(KEYS[1])
  return {'ok', epoch}
end
redis.call('HSET', KEYS[1], 'reg_until', int(now))
return {'over', epoch}
