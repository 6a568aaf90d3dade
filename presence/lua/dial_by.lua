-- Replaces for whom the connection of a session is made. KEYS: record. ARGV: epoch, for whom. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'dial')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') or not r[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'dial_by', ARGV[2])
return 1
