-- Renews an edge's lease. KEYS: lease, beat. ARGV: incarnation, lease (ms), a random word for this renewal.
-- The beat tells when it was, too. Returns 1 when the lease had been there; the same when asked again because the answer was lost.
local held = redis.call('GET', KEYS[1]) == ARGV[1] and '1' or '0'
local word, before = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) (%d) ')
if word == ARGV[3] then
  held = before
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[3] .. ' ' .. held .. ' ' .. int(micros()), 'PX', ARGV[2])
return tonumber(held)
