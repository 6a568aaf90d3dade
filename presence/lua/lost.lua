-- Tells whether a session is none of the agent's (any more). KEYS: record. ARGV: session.
-- Returns an epoch that is younger than all before it then, else '0'.
local r = redis.call('HMGET', KEYS[1], 'session', 'epoch')
if r[1] == ARGV[1] then
  return '0'
end
return following(r[2], micros())
