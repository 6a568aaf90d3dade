-- Writes a call again that callers wait for. KEYS: record.
-- ARGV: as of call_open, but in place of the last: how long ago its request began to be stored (ms; 0: it is stored), then all who wait.
-- Returns 'over' when others have ended it, 'other' when its name stands for another request, which is left as it is, else its state.
local r = redis.call('HMGET', KEYS[1], 'state', 'digest')
local state = r[1]
if state == 'over' then
  return state
end
if state and r[2] ~= ARGV[3] then
  return 'other'
end
for i = 11, #ARGV do
  redis.call('HSET', KEYS[1], 'w:' .. ARGV[i], '1')
end
redis.call('HSET', KEYS[1], 'state', state or 'open', 'digest', ARGV[3], 'from', ARGV[4], 'to', ARGV[5],
  'request', ARGV[6], 'deadline', ARGV[7], 'named', ARGV[8], 'streams', ARGV[9])
if ARGV[10] == '0' then
  redis.call('HSET', KEYS[1], 'asked', '1')
else
  redis.call('HSETNX', KEYS[1], 'since', int(math.floor(micros() / 1000) - tonumber(ARGV[10])))
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return state or 'open'
