-- Writes a claim again that the server may have lost. KEYS: record, unsettled, spaces, cancelled, lanes.
-- ARGV: epoch, edge, incarnation, connection, session, token, principal, card, detail, since, dirty, ms of grace left
-- (0: the agent is connected), how its connection is dialled (empty: it is not), for whom, how many pairs of lane fields follow, the token by which the agent came, those pairs, positions (with the session's spaces).
-- Returns {1, the spaces that the session is leaving, or has left, those that it is in again though the server had the claim, whether the server
-- had lost the claim}, or {0} when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch')
local us = micros()
local away = ARGV[12] ~= '0'
local lanes = 17 + 2 * tonumber(ARGV[15])
local leaving, again = {}, {}
if r[2] and tonumber(r[2]) > tonumber(ARGV[1]) then
  return {0}
end
local now = int(math.floor(us / 1000))
local since = ARGV[10] ~= '0' and ARGV[10] or now
local begun, lost = true, true
if r[2] == ARGV[1] then
  begun, lost = redis.call('HGET', KEYS[1], 'begun') == ARGV[1], false
  if r[1] ~= '1' and r[1] ~= '2' then
    return {0}
  end
  if away then -- who has lost its socket tells so, or has
    for i = lanes + 6, #ARGV, 2 do
      if (redis.call('HGET', KEYS[3], ARGV[i]) or '-') == '-' then
        leaving[#leaving + 1] = ARGV[i]
      end
    end
    return {1, leaving, {}, 0}
  end
  if r[1] == '2' then
    redis.call('HDEL', KEYS[1], 'grace_until', 'retold')
  end
else
  -- Lost, or an older copy: what is written now is all there is. Nobody knows what was sent meanwhile.
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HDEL', KEYS[1], 'grace_until', 'known_until', 'mark', 'offered', 'fresh', 'retold')
  redis.call('HSET', KEYS[1], 'session', ARGV[5], 'token', ARGV[6], 'token_before', ARGV[16], 'principal', ARGV[7], 'since', since,
    'begun', ARGV[1], 'dirty', ARGV[11], 'clean', '0', 'was_clean', '0', 'mailed', now)
  put_card(KEYS[1], '', ARGV[8], ARGV[9])
  put_dial(KEYS[1], ARGV[13], ARGV[14])
  for i = 1, 5 do
    redis.call('PERSIST', KEYS[i])
  end
  if away then
    redis.call('HSET', KEYS[1], 'grace_until', int(math.floor(us / 1000) + tonumber(ARGV[12])), 'retold', '1')
  end
end
redis.call('HSET', KEYS[1], 'state', away and '2' or '1', 'epoch', ARGV[1], 'edge', ARGV[2], 'inc', ARGV[3], 'conn', ARGV[4],
  'asserted', int(us))
for i = 17, lanes - 1, 2 do
  redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1])
end
for i = lanes + 6, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[3], ARGV[i], '0') == 1 and not lost then
    again[#again + 1] = ARGV[i]
  end
  if redis.call('HGET', KEYS[3], ARGV[i]) == '-' then
    leaving[#leaving + 1] = ARGV[i]
  end
end
if begun then -- else the last holder's positions still count
  put_positions(KEYS[1], KEYS[3], lanes, us)
end
return {1, leaving, again, lost and 1 or 0}
