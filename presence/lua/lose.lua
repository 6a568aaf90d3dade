-- The socket is gone. KEYS: record, spaces. ARGV: epoch, grace in ms (0 after a goodbye), positions: none where the claim is given back
-- and nothing was done under it.
-- Returns {1, ms of grace left} or {0}.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'begun', 'grace_until', 'was_clean')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return {0}
end
local us = micros()
if not ARGV[3] then
  redis.call('HSET', KEYS[1], 'flushed', ARGV[1])
  if r[3] == ARGV[1] then
    redis.call('HSET', KEYS[1], 'clean', r[5] or '0')
  end
elseif r[3] == ARGV[1] then -- one that never began has delivered nothing and knows no positions
  put_positions(KEYS[1], KEYS[2], 3, us)
  redis.call('HSET', KEYS[1], 'clean', '1')
end
local now = math.floor(us / 1000)
local over = now + tonumber(ARGV[2])
if r[4] then
  over = math.min(over, tonumber(r[4]))
end
redis.call('HSET', KEYS[1], 'state', '2', 'grace_until', int(over))
return {1, int(over - now)}
