-- Tells what an agent says of itself. KEYS: record. Returns the principal of its session and the bytes of its card, then those of its registration without a
-- connection; the bytes are empty where there is none.
local r = redis.call('HMGET', KEYS[1], 'principal', 'card', 'detail', 'reg_until', 'reg_principal', 'reg_card', 'reg_detail')
local said = {r[1] or '', '', r[5] or '', ''}
if r[2] and not bare(r[2]) then
  said[2] = string.len(r[2]) + string.len(r[3] or '')
end
if r[4] then
  said[4] = string.len(r[6] or '') + string.len(r[7] or '')
end
return said
