-- The log has been looked through for what the server has lost. KEYS: mark, its twin. ARGV: what the mark says if the server was not
-- made whole anew since, what it is to say. A mark that is lost stays so. Both are written, as where the server is made whole.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[2], ARGV[2])
end
return 1
