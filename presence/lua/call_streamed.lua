-- The stream that is the request of a call has ended. KEYS: record.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'streams', '0')
end
return 1
