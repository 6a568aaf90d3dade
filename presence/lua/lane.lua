-- Writes a lane of the session, and the start of a stream. KEYS: record, lanes.
-- ARGV: epoch, pairs of field and value. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return 0
end
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
return 1
