-- Looks at an agent whose time has come. KEYS: record, unsettled.
-- Returns {'none'}, {'active'}, {'grace', until} or {'ending', session, epoch, unsettled}.
local r = redis.call('HMGET', KEYS[1], 'state', 'grace_until', 'session', 'epoch')
if not r[1] or r[1] == '0' then
  return {'none'}
end
if r[1] == '1' then
  return {'active'}
end
local epoch = r[4]
if r[1] == '2' then
  local us = micros()
  if tonumber(r[2]) > us / 1000 then
    return {'grace', r[2]}
  end
  epoch = end_session(KEYS[1], KEYS[2], us)
end
return {'ending', r[3], epoch, redis.call('HGETALL', KEYS[2])}
