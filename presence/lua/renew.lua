-- Renews an edge's lease. KEYS: lease, beat. ARGV: incarnation, lease (ms), a random word for this renewal, another
-- incarnation whose lease may be replaced (empty: none's), whether the lease is only to be renewed where it is there.
-- The beat tells when it was, too. Returns {1, the word of the renewal before} when the lease had been there, {0} when it had not; the same when asked again
-- because the answer was lost, with this renewal's own word. {2, incarnation} when it is another's: nothing was written.
local now = redis.call('GET', KEYS[1])
local word, before = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) (%d) ')
if now and now ~= ARGV[1] and now ~= ARGV[4] then
  return {2, now}
end
if not now and ARGV[5] == '1' then
  return {0}
end
local held = now == ARGV[1] and '1' or '0'
if word == ARGV[3] then
  held = before
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[3] .. ' ' .. held .. ' ' .. int(micros()), 'PX', ARGV[2])
return {tonumber(held), word or ''}
