-- Takes ended streams out. KEYS: record, lanes, unsettled. ARGV: epoch, fields. Returns 1, or 0 when deposed, but for who
-- still has to hand over: once the next holder has begun it may have started a stream of the same name.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] and redis.call('HEXISTS', KEYS[3], ARGV[1]) == 0 then
  return 0
end
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return 1
