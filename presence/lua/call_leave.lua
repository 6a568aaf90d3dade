-- Callers wait no more. KEYS: record. ARGV: the waiter (empty: none; one that ends in * stands for all that begin so), what for: 'answered' when
-- it has the whole answer, 'end' to end the call if nobody is left, 'leave' for neither; how long the record is kept (ms; empty: as it is).
-- Returns {'gone'}, {'waits'} when others do, {'answered'}, {'left'}, or {'over', caller, addressee, request, named, streams} once it is ended.
local r = redis.call('HMGET', KEYS[1], 'state', 'from', 'to', 'request', 'named', 'streams')
if not r[1] then
  return {'gone'}
end
local w, n = 'w:' .. ARGV[1], 0
if string.sub(w, -1) == '*' then
  n = string.len(w) - 1
else
  redis.call('HDEL', KEYS[1], w)
end
if ARGV[3] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
if ARGV[2] == 'answered' and r[1] == 'open' then
  redis.call('HSET', KEYS[1], 'state', 'answered')
  r[1] = 'answered'
end
local waits = false
for _, k in ipairs(redis.call('HKEYS', KEYS[1])) do
  if n > 0 and string.sub(k, 1, n) == string.sub(w, 1, n) then
    redis.call('HDEL', KEYS[1], k)
  elseif string.sub(k, 1, 2) == 'w:' then
    waits = true
  end
end
if waits then
  return {'waits'}
end
if r[1] == 'answered' then
  return {'answered'}
end
if ARGV[2] ~= 'end' then
  return {'left'}
end
redis.call('HSET', KEYS[1], 'state', 'over')
return {'over', r[2], r[3], r[4], r[5], r[6] or '0'}
