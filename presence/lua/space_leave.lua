-- Leaves a space. KEYS: meta, members, order, pending. ARGV: agent, session, how many changes to keep, ms that a space may
-- stay empty, epoch: a membership of an earlier one is the session's, under the id that it had then. Returns {'ok', changed, members and their order, changes not yet announced} or {'none'}.
local kind = redis.call('HGET', KEYS[1], 'type')
if not kind then
  return {'none'}
end
local changed = 0
local old = redis.call('HGET', KEYS[2], ARGV[1])
if old and (string.match(old, '^%d+ (.*)$') == ARGV[2] or tonumber(string.match(old, '^%d+')) < tonumber(ARGV[5])) then
  local seq = redis.call('ZSCORE', KEYS[3], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  local version = int(redis.call('HINCRBY', KEYS[1], 'version', 1))
  redis.call('RPUSH', KEYS[4], version .. ' L ' .. int(tonumber(seq or '0')) .. ' ' .. ARGV[1])
  redis.call('LTRIM', KEYS[4], '-' .. ARGV[3], -1)
  if kind == 'public' and redis.call('HLEN', KEYS[2]) == 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    redis.call('PEXPIRE', KEYS[4], ARGV[4])
  end
  changed = 1
end
return {'ok', changed, redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), redis.call('LRANGE', KEYS[4], 0, -1)}
