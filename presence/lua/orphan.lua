-- The holder has no lease any more. KEYS: record. ARGV: edge, incarnation, when its lease ended (ms; 0: now), grace (ms),
-- µs: a claim made or re-asserted after it is left alone, as its holder may have its lease again.
-- Returns {when the grace is over (ms; 0 when the agent is not that holder's), whether the session's connection is dialled}.
local r = redis.call('HMGET', KEYS[1], 'state', 'edge', 'inc', 'epoch', 'grace_until', 'asserted', 'dial')
if r[2] ~= ARGV[1] or r[3] ~= ARGV[2] then
  return {'0'}
end
if r[1] == '2' then
  return {r[5], r[7] and 1 or 0}
end
if r[1] ~= '1' then
  return {'0'}
end
if tonumber(r[4]) > tonumber(ARGV[5]) or tonumber(r[6] or '0') > tonumber(ARGV[5]) then
  return {'0'}
end
local now = math.floor(micros() / 1000)
local from = tonumber(ARGV[3])
if from == 0 or from > now then
  from = now
end
local over = r[5] or int(from + tonumber(ARGV[4]))
raise(KEYS[1], 'dirty', r[4])
-- What was sent while the id looked online was not noted: mailed says that something may have been.
redis.call('HSET', KEYS[1], 'state', '2', 'grace_until', over, 'clean', '0', 'mailed', int(now))
return {over, r[7] and 1 or 0}
