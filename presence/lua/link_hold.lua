-- Has an edge hold a link, or hold it on, or let go of it. KEYS: links, who holds them. ARGV: its field, when it was made, edge, incarnation, for how long (ms; 0: not any
-- more), what the edge says of it. Returns 1 where the edge holds it now, or 0.
local since = parse_link(redis.call('HGET', KEYS[1], ARGV[1]))
local untl, edge, inc = parse_holder(redis.call('HGET', KEYS[2], ARGV[1]))
local now = math.floor(micros() / 1000)
local mine = edge == ARGV[3] and inc == ARGV[4]
if since ~= tonumber(ARGV[2]) or (untl > now and not mine) then
  return 0
end
if ARGV[5] == '0' then
  if mine then
    redis.call('HDEL', KEYS[2], ARGV[1])
  end
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], int(now + tonumber(ARGV[5])) .. ' ' .. ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[6])
return 1
