-- Lists the links of the cluster. KEYS: links, who holds them. ARGV: how long one that is over is kept (ms), then the links that the caller knows, each by its field,
-- when it was made and when it was over (0: it is not). What the server has lost of them, or has as it was before, is written again.
-- Returns {fields and links by turns, fields and holders by turns}.
local now = math.floor(micros() / 1000)
local keep = tonumber(ARGV[1])
for i = 2, #ARGV, 3 do
  local since, over = parse_link(redis.call('HGET', KEYS[1], ARGV[i]))
  local newer = tonumber(ARGV[i + 1]) > since or (tonumber(ARGV[i + 1]) == since and over == 0 and ARGV[i + 2] ~= '0')
  if newer and (ARGV[i + 2] == '0' or now - tonumber(ARGV[i + 2]) < keep) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
  end
end
local links, holders = {}, {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local _, over = parse_link(all[i + 1])
  if over ~= 0 and now - over >= keep then
    redis.call('HDEL', KEYS[1], all[i])
  else
    links[#links + 1] = all[i]
    links[#links + 1] = all[i + 1]
  end
end
all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if parse_holder(all[i + 1]) > now then
    holders[#holders + 1] = all[i]
    holders[#holders + 1] = all[i + 1]
  else
    redis.call('HDEL', KEYS[2], all[i])
  end
end
return {links, holders}
