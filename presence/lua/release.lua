-- Gives a lease or lock back. KEYS: lock. ARGV: its value. Returns 1 when it was that one's.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
