-- Begins every script. A script touches the keys of one hash tag only.

-- micros is the server's time in µs: exact in a double until the year 2255.
local function micros()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- int spells a whole number with all its digits; Lua's own spelling stops at 14.
local function int(n)
  return string.format('%.0f', n)
end

-- following is the epoch after this one: it grows even when the server lost the last one.
local function following(epoch, us)
  return int(math.max(tonumber(epoch or '0') + 1, us))
end

-- raise sets a field to a number unless it is higher already.
local function raise(key, field, n)
  local old = redis.call('HGET', key, field)
  if not old or tonumber(old) < tonumber(n) then
    redis.call('HSET', key, field, n)
  end
end

-- depose puts an agent's holder among those that are still to settle, unless it has flushed what it had.
local function depose(rec, unsettled)
  local r = redis.call('HMGET', rec, 'edge', 'inc', 'epoch', 'flushed')
  if r[4] ~= r[3] then
    redis.call('HSET', unsettled, r[3], r[1] .. ' ' .. r[2])
  end
end

-- end_session moves an agent to ending under a new epoch; its last holder may still have to settle.
local function end_session(rec, unsettled, us)
  local epoch = following(redis.call('HGET', rec, 'epoch'), us)
  depose(rec, unsettled)
  redis.call('HSET', rec, 'state', '3', 'epoch', epoch)
  return epoch
end

-- put_positions writes what stands in ARGV from i on: cursor, written, tail, tail_at, age of the tail,
-- mark, then pairs of space and cursor. A space that the session has left, or is leaving, stays so.
local function put_positions(rec, spaces, i, us)
  redis.call('HSET', rec, 'cursor', ARGV[i])
  raise(rec, 'written', ARGV[i + 1])
  if ARGV[i + 3] ~= '0' then
    local seen = int(math.floor(us / 1000) - tonumber(ARGV[i + 4]))
    redis.call('HSET', rec, 'tail', ARGV[i + 2], 'tail_at', ARGV[i + 3], 'tail_seen', seen)
  end
  if ARGV[i + 5] ~= '0' then
    redis.call('HSET', rec, 'mark', ARGV[i + 5])
  end
  for k = i + 6, #ARGV, 2 do
    local at = redis.call('HGET', spaces, ARGV[k])
    if ARGV[k + 1] ~= '0' and at and at ~= '-' then
      redis.call('HSET', spaces, ARGV[k], ARGV[k + 1])
    end
  end
end

-- put_card writes a card and its detail, of the session ('') or the registration ('reg_').
local function put_card(rec, whose, card, detail)
  redis.call('HSET', rec, whose .. 'card', card)
  if detail == '' then
    redis.call('HDEL', rec, whose .. 'detail')
  else
    redis.call('HSET', rec, whose .. 'detail', detail)
  end
end

-- put_dial writes how a session's connection is dialled, and for whom; empty: its agent has made it.
local function put_dial(rec, dial, by)
  if dial == '' then
    redis.call('HDEL', rec, 'dial', 'dial_by')
  else
    redis.call('HSET', rec, 'dial', dial, 'dial_by', by)
  end
end

-- bare tells whether a card, of whatever version, says nothing of its agent but its dialect.
local function bare(card)
  return card and string.sub(card, 2, 13) == '{"bare":true'
end

-- yields tells whether a principal is that of a link: its agents make room for those that come here by themselves, and for those of an older link.
local function yields(principal)
  return principal and string.sub(principal, 1, 13) == 'cluster.link/'
end

-- parse_link returns when a link was made and when it was over; zeros for none.
local function parse_link(link)
  local since, over = string.match(link or '', '^(%d+) (%d+)$')
  return tonumber(since or '0'), tonumber(over or '0')
end

-- parse_holder returns until when a link is held, by which life of an edge.
local function parse_holder(holder)
  local untl, edge, inc = string.match(holder or '', '^(%d+) (%S+) (%S+)')
  return tonumber(untl or '0'), edge, inc
end

-- unregister forgets a registration without a connection, but for its epoch: an edge that writes it again later is to find it older.
local function unregister(rec)
  redis.call('HDEL', rec, 'reg_principal', 'reg_until', 'reg_since', 'reg_card', 'reg_detail')
end

-- parse_entry returns the stamp, the number and the bytes of an entry of the account of cards; zeros for none.
local function parse_entry(entry)
  local stamp, n, bytes = string.match(entry or '', '^(%d+) (%d+) (%d+)$')
  return stamp or '0', tonumber(n or '0'), tonumber(bytes or '0')
end

-- levels_of returns in which sums an entry of the account of cards counts: its principal's, its tenant's and that of all.
local function levels_of(field)
  local tenant, principal = string.match(field, '^%S+ ([^.]+)%.%S+ (%S+)$')
  return {'p ' .. tenant .. ' ' .. principal, 't ' .. tenant, 'all'}
end

-- sums_of returns the sums in which an entry counts, of number (1) or bytes (2).
local function sums_of(key, field, k)
  local of = levels_of(field)
  local kind = k == 1 and ' n' or ' b'
  local sums = redis.call('HMGET', key, of[1] .. kind, of[2] .. kind, of[3] .. kind)
  return {tonumber(sums[1] or '0'), tonumber(sums[2] or '0'), tonumber(sums[3] or '0')}
end

-- share returns a part of what is there, rounded up; ARGV has how large it is from i on.
local function share(n, i)
  local of, whole = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  return math.floor((math.max(n, 0) * of + whole - 1) / whole)
end

-- full_level returns the widest level that has no room for more (1 principal, 2 tenant, 3 all), 0 where there is none: of what other tenants don't
-- hold a tenant may hold a share, and of what other principals of its tenant don't hold of that a principal. ARGV has the shares, and what a principal and all may hold.
local function full_level(held, more, shares, bounds)
  local own, all = tonumber(ARGV[bounds]), tonumber(ARGV[bounds + 1])
  if all > 0 then
    local tenants = share(all - (held[3] - held[2]), shares)
    local principals = share(tenants - (held[2] - held[1]), shares + 2)
    if held[3] + more > all then
      return 3
    elseif held[2] + more > tenants then
      return 2
    elseif held[1] + more > principals then
      return 1
    end
  end
  return own > 0 and held[1] + more > own and 1 or 0
end

-- put_entry writes an entry of the account of cards, and the sums with it; of nothing there is none.
local function put_entry(keys, field, n, bytes)
  local stamp, n0, bytes0 = parse_entry(redis.call('HGET', keys[1], field))
  for _, level in ipairs(levels_of(field)) do
    if redis.call('HINCRBY', keys[2], level .. ' n', int(tonumber(n) - n0)) == 0 then
      redis.call('HDEL', keys[2], level .. ' n')
    end
    if redis.call('HINCRBY', keys[2], level .. ' b', int(tonumber(bytes) - bytes0)) == 0 then
      redis.call('HDEL', keys[2], level .. ' b')
    end
  end
  if tonumber(n) + tonumber(bytes) == 0 then
    redis.call('HDEL', keys[1], field)
    redis.call('ZREM', keys[3], field)
  else
    redis.call('HSET', keys[1], field, following(stamp, micros()) .. ' ' .. n .. ' ' .. bytes)
  end
end

-- record is what a new holder, or whoever ends the session, needs to know.
local function record(rec, spaces, cancelled, lanes)
  local fields = redis.call('HMGET', rec, 'cursor', 'written', 'tail', 'tail_at', 'tail_seen', 'mailed',
    'mark', 'dirty', 'card', 'since', 'detail', 'reg_until', 'dial', 'dial_by', 'takes')
  for i = 1, 15 do
    fields[i] = fields[i] or ''
  end
  return {fields, redis.call('HGETALL', spaces), redis.call('HGETALL', cancelled), redis.call('HGETALL', lanes)}
end
