-- Joins a space. KEYS: meta, members, order, pending. ARGV: agent, session, epoch, type, whether to make the space,
-- most members, how many changes to keep, how it comes about: 'new', 'again' (it was a member before, and is one though the space is full), 'lost' (so
-- too, and others know it as one: they are told nothing).
-- Returns {'ok', changed, members and their order, changes not yet announced}, {'none'}, {'full'} or {'deposed'}.
if redis.call('EXISTS', KEYS[1]) == 0 then
  if ARGV[5] == '0' then
    return {'none'}
  end
  local us = micros()
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
  -- From the clock: versions grow although the space was gone in between.
  redis.call('HSET', KEYS[1], 'type', ARGV[4], 'version', int(us), 'created', int(math.floor(us / 1000)), 'seq', '0')
end
local changed = 0
local old = redis.call('HGET', KEYS[2], ARGV[1])
if old then
  if tonumber(string.match(old, '^%d+')) > tonumber(ARGV[3]) then
    return {'deposed'}
  end
else
  if ARGV[8] == 'new' and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[6]) then
    return {'full'}
  end
  local seq = int(redis.call('HINCRBY', KEYS[1], 'seq', 1))
  redis.call('ZADD', KEYS[3], seq, ARGV[1])
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[4])
  if ARGV[8] ~= 'lost' then
    local version = int(redis.call('HINCRBY', KEYS[1], 'version', 1))
    redis.call('RPUSH', KEYS[4], version .. ' J ' .. seq .. ' ' .. ARGV[1])
    redis.call('LTRIM', KEYS[4], '-' .. ARGV[7], -1)
  end
  changed = 1
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3] .. ' ' .. ARGV[2])
return {'ok', changed, redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), redis.call('LRANGE', KEYS[4], 0, -1)}
