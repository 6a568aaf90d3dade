-- Makes a member of an index that was seen there due only after a while. KEYS: index. ARGV: member, the score that it was seen with, ms from now.
-- Returns the new score, or an empty text when it stands there with another.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
  return ''
end
-- The half tells this score from any that is set otherwise.
local again = int(math.floor(micros() / 1000) + tonumber(ARGV[3])) .. '.5'
redis.call('ZADD', KEYS[1], again, ARGV[1])
return again
