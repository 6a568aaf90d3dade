-- Makes a space where it is missing. KEYS: meta, members, order, pending. ARGV: type, ms that it may stay empty.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local us = micros()
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], 'type', ARGV[1], 'version', int(us), 'created', int(math.floor(us / 1000)), 'seq', '0')
if ARGV[1] == 'public' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
