-- Takes a space out of the agent's session. KEYS: record, spaces. ARGV: session, space.
if redis.call('HGET', KEYS[1], 'session') == ARGV[1] then
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1
