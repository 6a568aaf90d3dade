-- Returns entries of the account of cards, an empty text for each that is not there. KEYS: entries. ARGV: which.
local all = {}
for i = 1, #ARGV do
  all[i] = redis.call('HGET', KEYS[1], ARGV[i]) or ''
end
return all
