-- The log has been looked through for what the server has lost. KEYS: mark. ARGV: what it says if the server was not
-- made whole anew since, what it is to say. A mark that is lost stays so.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
