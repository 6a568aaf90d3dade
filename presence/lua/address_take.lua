-- Gives an address to an agent. KEYS: addresses. ARGV: address, agent, what tells its entry from others, whether an address without an
-- entry is known to be nobody's, the entry of another that is void (empty: none).
-- Returns {'ok', its entry before}, {'unsure'}, or {'taken', entry of another, its age in ms}.
local old = redis.call('HGET', KEYS[1], ARGV[1])
local now = math.floor(micros() / 1000)
if not old and ARGV[4] == '0' then
  return {'unsure'}
end
if old and old ~= ARGV[5] and string.match(old, '^(%S+) ') ~= ARGV[2] then
  return {'taken', old, int(math.max(0, now - tonumber(string.match(old, '(%d+)$'))))}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. int(now))
return {'ok', old or ''}
