-- Writes a space into the agent's session. KEYS: record, spaces. ARGV: session, epoch (empty: any of the session's), space.
-- Returns 1, or 0 when the session is over or the claim was taken.
local r = redis.call('HMGET', KEYS[1], 'state', 'session', 'epoch')
if (r[1] ~= '1' and r[1] ~= '2') or r[2] ~= ARGV[1] or (ARGV[2] ~= '' and r[3] ~= ARGV[2]) then
  return 0
end
if redis.call('HGET', KEYS[2], ARGV[3]) == '-' then -- it was leaving, and joins again
  redis.call('HDEL', KEYS[2], ARGV[3])
end
redis.call('HSETNX', KEYS[2], ARGV[3], '0')
return 1
