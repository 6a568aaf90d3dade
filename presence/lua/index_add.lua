-- Lists members in an index, at a time from now on. KEYS: index. ARGV: ms from now, members.
local at = int(math.floor(micros() / 1000) + tonumber(ARGV[1]))
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], at, ARGV[i])
end
return 1
