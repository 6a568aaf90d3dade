-- Writes executes of an agent that are open. KEYS: the agent's executes. ARGV: the mark of who remembers them, now (ms, as are the times below),
-- how many there may be, whether they are written again (1 or 0), the latest time at which one of them ends, then triples of field, time at which it ends, value.
-- Every value begins with a version and that time; a mark is a field that begins with a NUL. Returns 'there' when they are written again and the
-- mark shows that nothing was lost, 'full' when there would be too many (nothing is written then), else 'ok'.
if ARGV[4] == '1' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return 'there'
end
local now, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local new = 0
for i = 6, #ARGV, 3 do
  new = new + 1 - redis.call('HEXISTS', KEYS[1], ARGV[i])
end
if redis.call('HLEN', KEYS[1]) + new > most then
  local all, held = redis.call('HGETALL', KEYS[1]), 0
  for i = 1, #all, 2 do
    local till = tonumber(string.match(all[i + 1], '^1(%d+)') or '0')
    if till <= now then
      redis.call('HDEL', KEYS[1], all[i])
    elseif string.byte(all[i]) ~= 0 then
      held = held + 1
    end
  end
  new = 0
  for i = 6, #ARGV, 3 do
    new = new + 1 - redis.call('HEXISTS', KEYS[1], ARGV[i])
  end
  if held + new > most then
    return 'full'
  end
end
local mark = tonumber(string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^1(%d+)') or '0')
redis.call('HSET', KEYS[1], ARGV[1], '1' .. int(math.max(mark, tonumber(ARGV[5]))))
for i = 6, #ARGV, 3 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
end
local lasts = tonumber(ARGV[5]) - now
if redis.call('PTTL', KEYS[1]) < lasts then
  redis.call('PEXPIRE', KEYS[1], int(lasts))
end
return 'ok'
