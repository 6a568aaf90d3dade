-- The server is whole. KEYS: mark, its twin. ARGV: what the mark says. The twin is never read: it is there so that the mark is written by
-- a script with several writes, as almost all data is. A server that loses those (redis #14541) loses the mark with them.
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1])
return 1
