-- Lists a member in an index at a time from now on, unless it stands there for an earlier one. KEYS: index. ARGV: ms from now, member.
local at = math.floor(micros() / 1000) + tonumber(ARGV[1])
local old = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not old or tonumber(old) > at then
  redis.call('ZADD', KEYS[1], int(at), ARGV[2])
end
return 1
