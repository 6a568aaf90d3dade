-- Takes announced changes off the list. KEYS: pending. ARGV: version.
while true do
  local head = redis.call('LINDEX', KEYS[1], 0)
  if not head or tonumber(string.match(head, '^%d+')) > tonumber(ARGV[1]) then
    return 1
  end
  redis.call('LPOP', KEYS[1])
end
