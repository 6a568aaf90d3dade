-- Returns {now, members and scores} of what is due in an index. KEYS: index.
-- ARGV: least age (ms), how many, ms from now at which they are due again (empty: as they are).
local now = math.floor(micros() / 1000)
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', int(now - tonumber(ARGV[1])), 'WITHSCORES', 'LIMIT', 0, ARGV[2])
if ARGV[3] ~= '' then
  -- The half tells this score from any that is set otherwise.
  local again = int(now + tonumber(ARGV[3])) .. '.5'
  for i = 1, #found, 2 do
    redis.call('ZADD', KEYS[1], again, found[i])
    found[i + 1] = again
  end
end
return {int(now), found}
