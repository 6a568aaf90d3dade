-- Makes a link, unless it stands. KEYS: links. ARGV: its field, when it is made (µs). Returns {1 if it was made, when}.
local since, over = parse_link(redis.call('HGET', KEYS[1], ARGV[1]))
if since ~= 0 and over == 0 then
  return {0, int(since)}
end
since = int(math.max(tonumber(ARGV[2]), since + 1))
redis.call('HSET', KEYS[1], ARGV[1], since .. ' 0')
return {1, since}
