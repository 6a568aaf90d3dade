-- The request of a call begins to be stored once more, as it was not. KEYS: record.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'since', int(math.floor(micros() / 1000)))
end
return 1
