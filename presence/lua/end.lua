-- The agent said goodbye. KEYS: record, unsettled. ARGV: epoch. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'flushed')
if r[1] == '3' and (r[3] == ARGV[1] or redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1) then
  return 1 -- done before
end
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return 0
end
end_session(KEYS[1], KEYS[2], micros())
return 1
