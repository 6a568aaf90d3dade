-- Writes a call that is made, or made again under its name. KEYS: record.
-- ARGV: waiter, how long the record is kept (ms), digest of what is asked, caller, addressee, request, deadline (ms), whether it has a name
-- (1 or 0), whether its request is a stream (1 or 0), ms after which nobody may store the request unseen who finds it not stored.
-- Returns {'new'}, {'other'} when the name stands for another request, else the state of the call that it finds ('open', 'answered' or 'over')
-- and of its request: 0 not stored, 1 stored, 2 nobody knows.
local r = redis.call('HMGET', KEYS[1], 'state', 'digest', 'asked', 'since')
if r[1] and r[2] ~= ARGV[3] then
  return {'other'}
end
if r[1] == 'over' then
  return {'over'}
end
redis.call('HSET', KEYS[1], 'w:' .. ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local now = math.floor(micros() / 1000)
if r[1] then
  return {r[1], r[3] and 1 or (now - tonumber(r[4] or '0') > tonumber(ARGV[10]) and 2 or 0)}
end
redis.call('HSET', KEYS[1], 'state', 'open', 'digest', ARGV[3], 'from', ARGV[4], 'to', ARGV[5], 'request', ARGV[6],
  'deadline', ARGV[7], 'named', ARGV[8], 'streams', ARGV[9], 'since', int(now))
return {'new'}
