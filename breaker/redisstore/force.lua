-- Forces or releases. ARGV: 12 what (now, kept, again, over), 13 note, 14 the
-- revision at which the worker knows it as forced.
local what = ARGV[12]
if what == 'kept' then return answer(r.forced == 1) end
if what == 'over' then
  if r.forced == 1 or r.revision < tonumber(ARGV[14]) then
    r.forced, r.note = 0, '-'
    open(tonumber(ARGV[10]))
  end
  return answer(true)
end
if what == 'again' and (r.forced == 1 or r.revision > known) then return answer(false) end
r.forced, r.note = 1, ARGV[13]
return answer(true)
