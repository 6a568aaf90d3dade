-- The session is over. KEYS: record, unsettled, spaces, cancelled, lanes.
-- ARGV: epoch, how long the agent is known, how long its positions are kept (ms),
-- whether it stays registered without a connection. Returns {0} when deposed, else {1, the principal of a session that had a card to count, that of a
-- registration that is over}, each in a list, which is empty where there is none.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'principal', 'dial', 'card', 'reg_until', 'reg_principal')
if r[2] ~= ARGV[1] or (r[1] ~= '3' and r[1] ~= '0') then
  return {0}
end
if r[1] == '0' then
  return {1, {}, {}} -- done before
end
local counted, over = {}, {}
if r[5] and not bare(r[5]) then
  counted[1] = r[3] or ''
end
local now = math.floor(micros() / 1000)
redis.call('HSET', KEYS[1], 'state', '0', 'known_until', int(now + tonumber(ARGV[2])))
if not r[4] and not yields(r[3]) then
  redis.call('HSET', KEYS[1], 'returns', '1') -- while it is known its mail waits for it, and no link has its id
end
redis.call('HDEL', KEYS[1], 'edge', 'inc', 'conn', 'session', 'token', 'principal', 'grace_until', 'card', 'detail', 'since',
  'mark', 'dirty', 'asserted', 'flushed', 'token_before', 'dial', 'dial_by', 'offered', 'fresh', 'retold')
redis.call('DEL', KEYS[3], KEYS[5])
for _, k in ipairs({KEYS[2], KEYS[4]}) do
  redis.call('PEXPIRE', k, ARGV[3])
end
if ARGV[4] == '0' then
  if r[6] then
    over[1] = r[7] or ''
  end
  unregister(KEYS[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return {1, counted, over}
