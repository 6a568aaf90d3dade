-- Takes a call off its agent's list, unless another one stands there. KEYS: the agent's calls. ARGV: field, box. Returns 1 or 0.
local listed = redis.call('HGET', KEYS[1], ARGV[1])
if not listed or string.match(listed, ' (.*)$') ~= ARGV[2] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[1])
