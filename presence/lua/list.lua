-- Lists members in a tenant's directory now, before what is to be changed of them changes. KEYS: index, revision. ARGV: members.
-- The revision is when the server began to count, and a number that grows.
local us = micros()
local at = int(math.floor(us / 1000))
for i = 1, #ARGV do
  redis.call('ZADD', KEYS[1], at, ARGV[i])
end
local born, n = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+)$')
redis.call('SET', KEYS[2], (born or int(us)) .. ' ' .. following(n, us))
return 1
