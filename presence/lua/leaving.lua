-- Notes that the agent's session leaves a space, which is to be told. KEYS: record, spaces. ARGV: session, space.
if redis.call('HGET', KEYS[1], 'session') == ARGV[1] and redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then
  redis.call('HSET', KEYS[2], ARGV[2], '-')
end
return 1
