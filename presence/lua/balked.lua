-- A connection was closed by its agent, which takes no frame so large. KEYS: record. ARGV: epoch, which was the largest that it was given, and the size of that.
-- The second time in a row the agent is known to take only what is smaller. Returns 1, or 0 where that was told before or another holder has begun.
local r = redis.call('HMGET', KEYS[1], 'begun', 'balked', 'takes')
local epoch, place = string.match(r[2] or '', '^(%d+) (%S+)$')
if r[1] ~= ARGV[1] or epoch == ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'balked', ARGV[1] .. ' ' .. ARGV[2])
local most = tonumber(ARGV[3]) - 1
if place == ARGV[2] and most < tonumber(r[3] or most + 1) then
  redis.call('HSET', KEYS[1], 'takes', int(most))
end
return 1
