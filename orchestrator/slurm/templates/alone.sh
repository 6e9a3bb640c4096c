
pass_on() { kill -TERM "$running" 2>/dev/null; }

if [[ -n $ending ]]; then # asked to end before it began
  code=143
else
  "${command[@]}" &
  running=$!
  catch_up
  wait_for "$running"
  code=$?
  running=''
fi
