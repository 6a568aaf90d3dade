-- Nothing of a lost session is under way at its last holder any more: whoever goes on with it need not ask there.
-- KEYS: record. ARGV: epoch. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if r[1] ~= '2' or r[2] ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'flushed', ARGV[1])
return 1
