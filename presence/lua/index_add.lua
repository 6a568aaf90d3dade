-- Lists members in an index, at a time from now on. KEYS: index. ARGV: ms from now, members. Returns how many did not stand there.
local at = int(math.floor(micros() / 1000) + tonumber(ARGV[1]))
local new = 0
for i = 2, #ARGV do
  new = new + redis.call('ZADD', KEYS[1], at, ARGV[i])
end
return new
