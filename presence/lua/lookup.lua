-- Finds an agent, and notes that something is sent to it where it is away. KEYS: record. ARGV: how long ago (ms).
-- Returns {'unknown'}, {'bare'} of a peer of libp2p that is registered without a session, {'away', cursor, 'returns' while its session is in its grace} or {'online', cursor, edge, incarnation}.
local r = redis.call('HMGET', KEYS[1], 'state', 'cursor', 'edge', 'inc', 'known_until', 'reg_until')
if not r[1] and not r[6] then
  return {'unknown'}
end
if r[1] == '1' then
  return {'online', r[2] or '0', r[3], r[4]}
end
local now = math.floor(micros() / 1000)
if (not r[1] or r[1] == '0') and tonumber(r[5] or '0') <= now and tonumber(r[6] or '0') <= now then
  return {'unknown'}
end
if (not r[1] or r[1] == '0') and tonumber(r[5] or '0') <= now and string.find(redis.call('HGET', KEYS[1], 'reg_card') or '', '"dialect":"p2p"', 1, true) then
  return {'bare'}
end
raise(KEYS[1], 'mailed', int(now - tonumber(ARGV[1])))
return {'away', r[2] or '0', r[1] == '2' and 'returns' or ''}
