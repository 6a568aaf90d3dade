-- Lists members in an index now that do not stand there. KEYS: index. ARGV: members.
local at = int(math.floor(micros() / 1000))
for i = 1, #ARGV do
  redis.call('ZADD', KEYS[1], 'NX', at, ARGV[i])
end
return 1
