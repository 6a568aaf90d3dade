-- Writes the entry of an address that the server may have lost. KEYS: addresses. ARGV: address, agent, what tells its entry from others, the
-- entry of another that is void (empty: none). Returns {}, or {entry of another, its age in ms}.
local old = redis.call('HGET', KEYS[1], ARGV[1])
local now = math.floor(micros() / 1000)
if old and old ~= ARGV[4] then
  if string.match(old, '^(%S+) ') == ARGV[2] then
    return {}
  end
  return {old, int(math.max(0, now - tonumber(string.match(old, '(%d+)$'))))}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. int(now))
return {}
