-- Takes a space out of the agent's session. KEYS: record, spaces. ARGV: session, space, whether only if the session is leaving it.
if redis.call('HGET', KEYS[1], 'session') == ARGV[1]
  and (ARGV[3] == '0' or redis.call('HGET', KEYS[2], ARGV[2]) == '-') then
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1
