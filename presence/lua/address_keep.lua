-- Writes the entry of an address that the server may have lost. KEYS: addresses. ARGV: address, how its entry begins. Returns 1.
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2] .. int(math.floor(micros() / 1000)))
return 1
