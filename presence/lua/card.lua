-- Replaces the card. KEYS: record. ARGV: epoch, card. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return 0
end
redis.call('HSET', KEYS[1], 'card', ARGV[2])
return 1
