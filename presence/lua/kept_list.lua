-- Lists what kept_put has put and is not over. KEYS: hash. Returns fields and values by turns.
local now = math.floor(micros() / 1000)
local live = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local untl, value = string.match(all[i + 1], '^(%d+) (.*)$')
  if tonumber(untl or '0') > now then
    live[#live + 1] = all[i]
    live[#live + 1] = value
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live
