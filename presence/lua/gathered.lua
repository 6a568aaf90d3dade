-- The server is whole where it has lost nothing since a gathering began. KEYS: mark, its twin, since. ARGV: what the mark says, since when it is told again.
-- Returns 1, or 0 where it has lost that, too.
if redis.call('GET', KEYS[3]) ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[3])
return 1
