-- Shows that this edge may write here. KEYS: a key of nobody's, with a tag like any other. Returns 1.
redis.call('SET', KEYS[1], '1', 'PX', 1000)
return 1
