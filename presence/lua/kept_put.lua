-- Keeps values for a while. KEYS: hash. ARGV: for how long (ms), then fields and values by turns.
local lasts = tonumber(ARGV[1])
local untl = int(math.floor(micros() / 1000) + lasts)
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], untl .. ' ' .. ARGV[i + 1])
end
if redis.call('PTTL', KEYS[1]) < lasts then
  redis.call('PEXPIRE', KEYS[1], lasts)
end
return 1
