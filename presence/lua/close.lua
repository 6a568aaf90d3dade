-- Takes ended streams out. KEYS: record, lanes, unsettled. ARGV: epoch, whether its holder hands over ('1'), fields. Returns 1, or 0 when deposed, but for who
-- still has to hand over and does: once the next holder has begun it may have started a stream of the same name.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] and not (ARGV[2] == '1' and redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1) then
  return 0
end
for i = 3, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return 1
