-- Ends a link. KEYS: links. ARGV: its field. Returns 1, or 0 where there is none.
local since, over = parse_link(redis.call('HGET', KEYS[1], ARGV[1]))
if since == 0 or over ~= 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], int(since) .. ' ' .. int(math.floor(micros() / 1000)))
return 1
