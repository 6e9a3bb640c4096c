
# One Ray over all nodes of the job, with a token of its own. A Ray that is told to stay on loopback
# (the orchestrator's way on one machine) could not reach the other nodes.
export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=1 RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$run_dir/ray_token"
export RAY_memory_monitor_refresh_ms=0 RAY_worker_niceness=0 RAY_USAGE_STATS_ENABLED=0
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300
unset RAY_ADDRESS RAY_AUTH_TOKEN
PATH="$(dirname -- "$python"):$PATH" # symmetric-run looks for ray there

forget() { rm -f -- "$run_dir/orchestrator.pid" "$run_dir/exit_code" "$run_dir/ray_token"; }
forget
trap forget EXIT
(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$RAY_AUTH_TOKEN_PATH") ||
  fail "cannot write $RAY_AUTH_TOKEN_PATH"

# This script runs on the job's first node, which becomes the head: the orchestrator runs beside it.
address_here() { getent ahostsv4 "$(hostname)" | awk '$1 !~ /^127\./ { print $1; exit }'; }
head_ip="$(address_here)"
if [[ -z $head_ip ]]; then head_ip="$(hostname -I | awk '{ print $1 }')"; fi
[[ -n $head_ip ]] || fail 'this node has no address that other nodes could reach'
address="$head_ip:$((20000 + SLURM_JOB_ID % 10000))"

# symmetric-run says neither how the orchestrator ended nor passes on signals: files do.
# shellcheck disable=SC2016 # for the shell on the head
on_head='
"${@:2}" >>"$1/run.out" 2>&1 &
echo "$!" >"$1/orchestrator.pid"
wait "$!"
echo "$?" >"$1/exit_code"'
pass_on() {
  local pid=''
  if [[ -s $run_dir/orchestrator.pid ]]; then pid="$(<"$run_dir/orchestrator.pid")"; fi
  kill -TERM "${pid:-$running}" 2>/dev/null # before there is an orchestrator: the whole step
}

# Once the run has ended nothing else matters, but other nodes would look for their head for a minute.
end_step_after_run() {
  until [[ -s $run_dir/exit_code ]]; do
    kill -0 "$running" 2>/dev/null || return
    sleep 2
  done
  sleep 5
  kill -TERM "$running" 2>/dev/null
}

code=143
if [[ -z $ending ]]; then
  say "Ray is at $address on $nodes nodes and speaks in ray.out, the orchestrator in run.out."
  srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpus-per-task="$cpus" \
    --output="$run_dir/ray.out" --open-mode=append \
    ray symmetric-run --address "$address" --min-nodes "$nodes" \
    --num-cpus="$cpus" --num-gpus="$gpus" --object-store-memory=83886080 \
    -- bash -c "$on_head" on_head "$run_dir" "${command[@]}" "--address=$address" &
  running=$!
  catch_up
  end_step_after_run &
  watcher=$!
  wait_for "$running"
  code=$?
  running=''
  kill "$watcher" 2>/dev/null
  if [[ -s $run_dir/exit_code ]]; then
    code="$(<"$run_dir/exit_code")"
  elif [[ -n $ending ]]; then
    code=143
  elif [[ $code == 0 ]]; then
    code=7 # Ray did not start: symmetric-run ends with 0 then
  fi
fi
