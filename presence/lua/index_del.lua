-- Takes members off an index that nobody has listed again since. KEYS: index.
-- ARGV: least age (ms), pairs of member and the score it was seen with (empty: any). Returns how many.
local before = math.floor(micros() / 1000) - tonumber(ARGV[1])
local n = 0
for i = 2, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  score = score and tonumber(score)
  if score and score <= before and (ARGV[i + 1] == '' or score == tonumber(ARGV[i + 1])) then
    n = n + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return n
