-- Positions written behind. KEYS: record, spaces. ARGV: epoch, positions. Returns 1, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'begun')
if r[1] ~= '1' or r[2] ~= ARGV[1] or r[3] ~= ARGV[1] then
  return 0
end
put_positions(KEYS[1], KEYS[2], 2, micros())
return 1
