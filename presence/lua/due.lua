-- Looks at an agent whose time has come. KEYS: record, unsettled.
-- Returns {'none'}, {'registered', until}, {'lapsed', epoch}, {'active'}, {'grace', until} or {'ending', session, epoch, unsettled}.
local r = redis.call('HMGET', KEYS[1], 'state', 'grace_until', 'session', 'epoch')
if not r[1] or r[1] == '0' then
  local reg = redis.call('HMGET', KEYS[1], 'reg_until', 'reg_epoch')
  if not reg[1] then
    return {'none'}
  end
  if tonumber(reg[1]) > micros() / 1000 then
    return {'registered', reg[1]}
  end
  return {'lapsed', reg[2]}
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
