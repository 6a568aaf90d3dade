-- Takes from what an agent may say, of messages and of bytes: two buckets that fill at a rate, each kept as the moment (µs) from which on it is full. KEYS[1]: what the
-- agent has spent. ARGV, for messages and then for bytes: rate per second (0 for no limit), what the bucket holds, how much is needed, how much is wanted.
-- Takes nothing where a bucket lacks what is needed. Returns how much of each was taken, and after how many µs there is what is needed: 0 where it was taken.
local now = micros()
local paces = ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[5] .. ' ' .. ARGV[6]
local kept = redis.call('HMGET', KEYS[1], 'paces', 'm', 'b')
local wait, taken, full, lasts = 0, {}, {}, 0
for i = 0, 1 do
  local rate, room, need, want = tonumber(ARGV[i * 4 + 1]), tonumber(ARGV[i * 4 + 2]), tonumber(ARGV[i * 4 + 3]), tonumber(ARGV[i * 4 + 4])
  taken[i], full[i] = want, now
  if rate > 0 then
    if kept[1] == paces then -- what was taken at another rate says nothing at this one
      full[i] = math.max(now, tonumber(kept[i + 2] or '0'))
    end
    local left = room - (full[i] - now) * rate / 1000000
    if left < need - 0.001 then -- µs are counted, so a bucket that is filled is so but for a rounding
      wait = math.max(wait, math.ceil((need - left) * 1000000 / rate))
    end
    taken[i] = math.min(want, math.max(need, math.floor(left)))
    full[i] = full[i] + taken[i] * 1000000 / rate
    lasts = math.max(lasts, (full[i] - now) / 1000)
  end
end
if wait > 0 then
  return {0, 0, wait}
end
if lasts > 0 then
  redis.call('HSET', KEYS[1], 'paces', paces, 'm', int(full[0]), 'b', int(full[1]))
  redis.call('PEXPIRE', KEYS[1], int(math.ceil(lasts) + 1))
end
return {taken[0], taken[1], 0}
