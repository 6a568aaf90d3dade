-- Since when the server is told again what it had lost: from the first time that this is asked. KEYS: since. Returns {since (µs), ms since then}.
local us = micros()
local since = redis.call('GET', KEYS[1])
if not since then
  since = int(us)
  redis.call('SET', KEYS[1], since)
end
return {since, int(math.max(math.floor((us - tonumber(since)) / 1000), 0))}
