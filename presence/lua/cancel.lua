-- Notes that the agent cancelled a peer's stream. KEYS: record, cancelled.
-- ARGV: epoch, stream, position, how many to keep. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return 0
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. int(micros()))
if redis.call('HLEN', KEYS[2]) > tonumber(ARGV[4]) then
  local all = redis.call('HGETALL', KEYS[2])
  local oldest, at
  for i = 1, #all, 2 do
    local t = tonumber(string.match(all[i + 1], ' (%d+)$'))
    if all[i] ~= ARGV[2] and (not at or t < at) then
      oldest, at = all[i], t
    end
  end
  redis.call('HDEL', KEYS[2], oldest)
end
return 1
