-- Forgets a cancelled stream. KEYS: record, cancelled. ARGV: epoch, stream. Returns 1, or 0 when deposed.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
redis.call('HDEL', KEYS[2], ARGV[2])
return 1
