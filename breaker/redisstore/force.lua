-- Forces or releases. ARGV: 12 what (now, kept, again, over), 13 note.
local what = ARGV[12]
if what == 'kept' then return answer(r.forced == 1) end
if what == 'over' then
  if r.forced == 0 then return answer(false) end
  r.forced, r.note = 0, '-'
  open(tonumber(ARGV[10]))
  return answer(true)
end
if what == 'again' and (r.forced == 1 or r.revision > known) then return answer(false) end
r.forced, r.note = 1, ARGV[13]
return answer(true)
