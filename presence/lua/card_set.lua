-- Has entries of the account of cards be as records bear them out. KEYS: entries, sums, when entries are compared.
-- ARGV, for each: entry, the stamp that it was seen with, number, bytes. One that has another stamp by now is left as it is. Returns how many were changed.
local changed = 0
for i = 1, #ARGV, 4 do
  local stamp, n, bytes = parse_entry(redis.call('HGET', KEYS[1], ARGV[i]))
  if stamp == ARGV[i + 1] and (n ~= tonumber(ARGV[i + 2]) or bytes ~= tonumber(ARGV[i + 3])) then
    put_entry(KEYS, ARGV[i], ARGV[i + 2], ARGV[i + 3])
    changed = changed + 1
  end
end
return changed
