-- Counts what an agent says of itself, in the account of cards. KEYS: entries, sums, when entries are compared with records.
-- ARGV: entry, number, bytes, ms until it is compared, whether whatever the bounds say, the shares of tenants (of, in) and of principals (of, in), then
-- for number and for bytes how much a principal and all may hold (0: no bound). What would hold more than a bound changes nothing.
-- Returns {0}, or {what has no room, at which level}: 1 number, 2 bytes; 1 principal, 2 tenant, 3 all.
local _, n, bytes = parse_entry(redis.call('HGET', KEYS[1], ARGV[1]))
local more = {tonumber(ARGV[2]) - n, tonumber(ARGV[3]) - bytes}
for k = 1, 2 do
  if ARGV[5] == '0' and more[k] > 0 then
    local level = full_level(sums_of(KEYS[2], ARGV[1], k), more[k], 6, 8 + 2 * k)
    if level > 0 then
      return {k, level}
    end
  end
end
put_entry(KEYS, ARGV[1], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[3], int(math.floor(micros() / 1000) + tonumber(ARGV[4])), ARGV[1])
return {0}
