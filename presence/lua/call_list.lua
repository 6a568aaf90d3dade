-- Lists a call with the agent that is asked. KEYS: the agent's calls. ARGV: field, box, how long it is listed (ms).
-- Now and then those are dropped that nobody took off the list. Returns 1.
local now = math.floor(micros() / 1000)
redis.call('HSET', KEYS[1], ARGV[1], int(now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if redis.call('HLEN', KEYS[1]) % 64 == 0 then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if tonumber(string.match(all[i + 1], '^%d+')) <= now then
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
return 1
