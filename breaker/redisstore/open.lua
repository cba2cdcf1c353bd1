-- Opens a circuit that is closed, unless it was closed after what the worker
-- knows.
if r.open == 1 or r.generation > known then return answer(false) end
if report() then open(tonumber(ARGV[10])) end
return answer(true)
