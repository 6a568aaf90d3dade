-- Takes a registration that is over out of the directory, while its agent has no session, and with an epoch forgets it. KEYS: record. ARGV: the epoch of one that
-- has been told of (empty: none has been), how long the agent's positions are kept (ms). Returns {the epoch, whose it is}, or {'0'} where there is none.
local r = redis.call('HMGET', KEYS[1], 'state', 'reg_until', 'reg_epoch', 'reg_principal')
if (r[1] and r[1] ~= '0') or not r[2] or tonumber(r[2]) > micros() / 1000 then
  return {'0'}
end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'reg_card', 'reg_detail')
  return {r[3], r[4] or ''}
end
if ARGV[1] ~= r[3] then
  return {'0'}
end
unregister(KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {r[3], r[4] or ''}
