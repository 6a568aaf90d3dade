-- Tells how old a lease is. KEYS: lease, beat. ARGV: incarnation.
-- Returns {1, ms since its last renewal}, or {0} when the lease is not that life's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {0}
end
local us = string.match(redis.call('GET', KEYS[2]) or '', ' (%d+)$')
return {1, us and int(math.max(0, math.floor((micros() - tonumber(us)) / 1000))) or '0'}
