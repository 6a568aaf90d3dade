-- Takes ended streams out. KEYS: record, lanes. ARGV: epoch, fields. Returns 1, or 0 when deposed:
-- the next holder may have started a stream of the same name.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return 1
