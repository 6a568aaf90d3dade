-- Has a session go on under another id: what its agent sends from now on is a new process's. KEYS: record, lanes of the id that it had.
-- ARGV: epoch, the new id. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if r[1] ~= '1' or r[2] ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'session', ARGV[2])
redis.call('DEL', KEYS[2])
return 1
