-- Gives an agent of any tenant the names of what its address reaches: all of them, or none. KEYS: names, names of each agent. ARGV: agent, what tells its
-- entry from others, whether a name without an entry is known to be nobody's, how many entries of others are void, those, the names.
-- Returns {'ok', the agent's entry before}, {'unsure'}, or {'taken', name, entry of another, its age in ms}.
local now, first, void = math.floor(micros() / 1000), 5 + tonumber(ARGV[4]), {}
for i = 5, first - 1 do
  void[ARGV[i]] = true
end
for i = first, #ARGV do
  local old = redis.call('HGET', KEYS[1], ARGV[i])
  if not old and ARGV[3] == '0' then
    return {'unsure'}
  end
  if old and not void[old] and string.match(old, '^(%S+) ') ~= ARGV[1] then
    return {'taken', ARGV[i], old, int(math.max(0, now - tonumber(string.match(old, '(%d+)$'))))}
  end
end
local was, has, entry = redis.call('HGET', KEYS[2], ARGV[1]), {}, ARGV[2]
for i = first, #ARGV do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[1] .. ' ' .. int(now))
  has[ARGV[i]] = true
  entry = entry .. ' ' .. ARGV[i]
end
for name in string.gmatch(string.match(was or '', ' (.*)$') or '', '%S+') do
  if not has[name] then
    entry = entry .. ' ' .. name
  end
end
redis.call('HSET', KEYS[2], ARGV[1], entry)
return {'ok', was or ''}
