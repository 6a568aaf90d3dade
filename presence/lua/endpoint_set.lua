-- Takes all names from an agent but those of an entry. KEYS: names, names of each agent. ARGV: agent, how its entry must begin, the entry in its place (empty:
-- none). Returns 1, or 0 when the entry is another one.
local old = redis.call('HGET', KEYS[2], ARGV[1])
if not old or string.sub(old, 1, string.len(ARGV[2])) ~= ARGV[2] then
  return 0
end
local stays = {}
for name in string.gmatch(string.match(ARGV[3], ' (.*)$') or '', '%S+') do
  stays[name] = true
end
for name in string.gmatch(string.match(old, ' (.*)$') or '', '%S+') do
  if not stays[name] and string.match(redis.call('HGET', KEYS[1], name) or '', '^(%S+) ') == ARGV[1] then
    redis.call('HDEL', KEYS[1], name)
  end
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
end
return 1
