-- Registers an agent without a connection. KEYS: record, unsettled. ARGV: principal, card, detail, ms that it lasts, whether an agent without a
-- record is known to have neither session nor registration, the epoch of a registration that the server may have lost (empty: a new one).
-- Returns {outcome, epoch, what has changed}: outcome is ok, unsure, owned, ending or older; what has changed is
-- '0' nothing that shows, '1' the card, '2' that there is one.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'principal', 'card',
  'reg_until', 'reg_epoch', 'reg_principal', 'reg_card', 'reg_detail')
local live = r[1] == '1' or r[1] == '2'
local us = micros()
local now = math.floor(us / 1000)
if not r[1] and not r[5] and ARGV[5] == '0' then
  return {'unsure'}
end
if ARGV[6] ~= '' and r[6] and tonumber(r[6]) >= tonumber(ARGV[6]) then
  return {'older', r[6], '0'}
end
if live and r[3] ~= ARGV[1] and yields(r[3]) then
  end_session(KEYS[1], KEYS[2], us)
  return {'ending'}
end
if r[1] == '3' or (r[5] and not live and tonumber(r[5]) <= now) then
  return {'ending'}
end
if (live and r[3] ~= ARGV[1]) or (r[5] and tonumber(r[5]) > now and r[7] ~= ARGV[1]) then
  return {'owned'}
end
local epoch = ARGV[6]
if epoch == '' then
  epoch = following(int(math.max(tonumber(r[2] or '0'), tonumber(r[6] or '0'))), us)
end
local same = r[8] == ARGV[2] and (r[9] or '') == ARGV[3]
local shown = '0'
if live then
  if not same and bare(r[4]) then
    shown = '1'
  end
elseif not r[5] then
  shown = '2'
  if not r[1] and ARGV[6] == '' then
    redis.call('HSET', KEYS[1], 'clean', '1') -- nothing was ever given to it
  end
elseif not same then
  shown = '1'
end
redis.call('HSET', KEYS[1], 'reg_principal', ARGV[1], 'reg_until', int(now + tonumber(ARGV[4])), 'reg_epoch', epoch)
redis.call('HSETNX', KEYS[1], 'reg_since', int(now))
put_card(KEYS[1], 'reg_', ARGV[2], ARGV[3])
redis.call('PERSIST', KEYS[1])
return {'ok', epoch, shown}
