-- Compares with a tenant's directory. KEYS: index, revision. ARGV: the revision that was seen last, since when to look
-- where it is another (ms), whether to look anyway. Returns {revision, now, members listed since}.
local now = int(math.floor(micros() / 1000))
local rev = redis.call('GET', KEYS[2]) or ''
if rev == ARGV[1] and ARGV[3] == '0' then
  return {rev, now, {}}
end
return {rev, now, redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[2], '+inf')}
