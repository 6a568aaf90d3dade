-- Takes an agent id. KEYS: record, unsettled, spaces, cancelled.
-- ARGV: edge, incarnation, connection, session, token, principal, resume token, epoch to evict, epoch
-- whose holder is known to have no lease, card, whether every edge is known to have told what it holds,
-- the session that the newcomer takes for its own, detail of the card, how its connection is dialled (empty: it is not), for whom,
-- the epoch of a dialled session that has no edge any more and is adopted (0: none).
-- Returns {outcome, session, epoch, incumbent's edge, incarnation and epoch, unsettled, how the connection was dialled before}.
local r = redis.call('HMGET', KEYS[1], 'state', 'edge', 'inc', 'epoch', 'conn', 'session', 'token', 'principal', 'grace_until', 'token_before', 'dial', 'fresh', 'retold')
local state, edge, inc, epoch, conn, session, token, principal = r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]
local us = micros()

local function answer(outcome, session, epoch)
  return {outcome, session or '', epoch or '0', edge or '', inc or '', r[4] or '0', redis.call('HGETALL', KEYS[2]), r[11] or ''}
end

-- The token before is that by which the agent came: it has no other while the answer is not known to have reached it.
local function hold(outcome, session, before)
  local now = following(epoch, us)
  redis.call('HSET', KEYS[1], 'state', '1', 'edge', ARGV[1], 'inc', ARGV[2], 'epoch', now,
    'conn', ARGV[3], 'session', session, 'token', ARGV[5], 'token_before', before)
  redis.call('HDEL', KEYS[1], 'offered', 'retold')
  if ARGV[16] == '0' then
    put_dial(KEYS[1], ARGV[14], ARGV[15])
  elseif ARGV[15] ~= '' then
    redis.call('HSET', KEYS[1], 'dial_by', ARGV[15])
  end
  return answer(outcome, session, now)
end

-- The same request again, because its answer was lost on the way.
if state == '1' and token == ARGV[5] and conn == ARGV[3] and edge == ARGV[1] and inc == ARGV[2] then
  return answer(session == ARGV[4] and 'new' or 'resumed', session, epoch)
end

-- Of those who adopt a session one is first: the others find another epoch.
local adopts = ARGV[16] ~= '0'
if adopts and ((state ~= '1' and state ~= '2') or epoch ~= ARGV[16] or not r[11]) then
  return answer('adopted', session, epoch)
end

local reg = redis.call('HMGET', KEYS[1], 'reg_until', 'reg_principal', 'known_until', 'returns')
if not state and not reg[1] and ARGV[11] == '0' then
  return answer('unsure')
end
-- Told by an earlier holder after a loss: the last one, where the agent may be connected, may not have told yet.
if state == '2' and r[13] and ARGV[11] == '0' and (ARGV[7] == '' or ARGV[7] ~= token and ARGV[7] ~= r[10]) then
  return answer('unsure')
end
if (not state or state == '0') and reg[1] then
  if tonumber(reg[1]) <= us / 1000 then
    return answer('ending')
  end
  if reg[2] ~= ARGV[6] then
    return answer('owned')
  end
end
if state == '0' and yields(ARGV[6]) and reg[4] and tonumber(reg[3] or '0') > us / 1000 then
  return answer('owned')
end
if not state or state == '0' then
  if not epoch then
    redis.call('DEL', KEYS[2], KEYS[4])
  end
  redis.call('DEL', KEYS[3])
  redis.call('HDEL', KEYS[1], 'mark', 'grace_until', 'known_until', 'returns', 'balked', 'takes')
  redis.call('HSET', KEYS[1], 'principal', ARGV[6], 'since', int(math.floor(us / 1000)), 'dirty', '0', 'fresh', '1')
  put_card(KEYS[1], '', ARGV[10], ARGV[13])
  for i = 1, 4 do
    redis.call('PERSIST', KEYS[i])
  end
  return hold('new', ARGV[4], '')
end

if state == '2' and tonumber(r[9]) <= us / 1000 then
  epoch = end_session(KEYS[1], KEYS[2], us)
  state = '3'
end
if state == '3' then
  return answer('ending', session, epoch)
end
if principal ~= ARGV[6] and yields(principal) then
  if not yields(ARGV[6]) then
    return answer('ending', session, end_session(KEYS[1], KEYS[2], us))
  end
  if ARGV[6] < principal then -- an older link goes on with it: nobody sees it gone meanwhile
    redis.call('HSET', KEYS[1], 'principal', ARGV[6])
    depose(KEYS[1], KEYS[2])
    return hold('resumed', session, token)
  end
end
if principal ~= ARGV[6] then
  return answer('exists', session, epoch)
end
if state == '1' and not adopts and epoch ~= ARGV[8] and epoch ~= ARGV[9] and (ARGV[7] == '' or ARGV[7] ~= token) then
  return answer('busy', session, epoch)
end
-- Whoever names no session takes what goes on for the one it has had: one that never began is not, for nobody was told of it.
if ARGV[12] ~= '' and ARGV[12] ~= session or ARGV[12] == '' and ARGV[7] == '' and r[12] and not adopts then
  return answer('ending', session, end_session(KEYS[1], KEYS[2], us))
end
if ARGV[7] ~= '' and ARGV[7] ~= token and ARGV[7] ~= r[10] then
  return answer('wrong', session, epoch)
end
-- grace_until stays until the newcomer begins: a take-over that never gets that far gives no new grace.
depose(KEYS[1], KEYS[2])
return hold('resumed', session, ARGV[7] ~= '' and ARGV[7] or token)
