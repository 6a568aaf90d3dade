-- Takes an address from an agent. KEYS: addresses. ARGV: address, how its entry begins, the entry in its place (empty: none).
-- Returns 1, or 0 when the entry is another one.
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old or string.sub(old, 1, string.len(ARGV[2])) ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
