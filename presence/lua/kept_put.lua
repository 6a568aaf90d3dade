-- Keeps values for a while, of at most a day. KEYS: hash. ARGV: for how long (ms), then fields and values by turns.
local untl = int(math.floor(micros() / 1000) + tonumber(ARGV[1]))
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], untl .. ' ' .. ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], 90000000)
return 1
