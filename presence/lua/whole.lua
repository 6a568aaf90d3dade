-- Tells whether the server is whole. KEYS: mark.
return redis.call('EXISTS', KEYS[1])
