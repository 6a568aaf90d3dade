-- Replaces the card. KEYS: record. ARGV: epoch, card, detail. Returns 1, 2 when it is the same, or 0 when deposed.
local r = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'card', 'detail')
if r[2] ~= ARGV[1] or (r[1] ~= '1' and r[1] ~= '2') then
  return 0
end
if r[3] == ARGV[2] and (r[4] or '') == ARGV[3] then
  return 2
end
put_card(KEYS[1], '', ARGV[2], ARGV[3])
return 1
