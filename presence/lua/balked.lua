-- A connection was closed by its agent, which takes no frame so large. KEYS: record. ARGV: epoch, which was the largest that it was given.
-- Returns how many connections in a row were closed so; 0 where another holder has begun.
local r = redis.call('HMGET', KEYS[1], 'begun', 'balked')
if r[1] ~= ARGV[1] then
  return 0
end
local times, epoch, place = string.match(r[2] or '', '^(%d+) (%d+) (%S+)$')
if epoch == ARGV[1] then
  return tonumber(times) -- it was told before
end
times = place == ARGV[2] and tonumber(times) + 1 or 1
redis.call('HSET', KEYS[1], 'balked', int(times) .. ' ' .. ARGV[1] .. ' ' .. ARGV[2])
return times
