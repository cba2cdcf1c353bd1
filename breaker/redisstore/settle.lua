-- Ends a probe. ARGV: 12 token, 13 generation, 14 lease, 15 shared, 16 locked, 17
-- outcome (0 neutral, 1 good, 2 bad), 18 to (half, closed, open).
local to, shared = ARGV[18], ARGV[15] == '1'
if missing then
  if to ~= 'open' or not shared then return answer(false) end
  if report() then open(tonumber(ARGV[10])) end
  return answer(true)
end
if r.generation ~= tonumber(ARGV[13]) then return answer(false) end
if locked() then
  if r.holder ~= ARGV[12] then return answer(false) end
elseif ARGV[16] == '1' then
  return answer(false)
end
unlock()
if to == 'closed' and r.open == 1 then
  revise()
  r.open, r.generation, r.reports = 0, r.revision, '-'
elseif to == 'closed' then
  withdraw()
elseif to == 'open' and (r.open == 1 or shared and report()) then
  open(tonumber(ARGV[10]))
elseif ARGV[17] == '1' then
  r.good = r.good + 1
elseif ARGV[17] == '2' then
  r.bad = r.bad + 1
end
return answer(true)
