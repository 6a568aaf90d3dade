-- The holder gives a session away whose connection it made: another may adopt it though this one lives. KEYS: record. ARGV: epoch. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'dial')
if r[1] ~= '1' or r[2] ~= ARGV[1] or not r[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'offered', ARGV[1])
return 1
