-- Reads a session that is ending. KEYS: record, unsettled, spaces, cancelled, lanes. ARGV: session.
-- Returns {'ok', epoch, clean, record, unsettled}, or {'gone'}.
local r = redis.call('HMGET', KEYS[1], 'state', 'session', 'epoch', 'clean')
if r[1] ~= '3' or r[2] ~= ARGV[1] then
  return {'gone'}
end
return {'ok', r[3], r[4] or '0', record(KEYS[1], KEYS[3], KEYS[4], KEYS[5]), redis.call('HGETALL', KEYS[2])}
