-- Takes the lock. ARGV: 12 token, 13 generation, 14 lease, 15 shared.
if missing then
  if ARGV[15] == '1' and report() then open(0) end
elseif r.forced == 1 or r.generation ~= tonumber(ARGV[13]) or locked() then
  return answer(false)
end
r.holder, r.held, r.lease = ARGV[12], now, tonumber(ARGV[14])
return answer(true)
