
set -u
say() { printf '%s  %s: %s\n' "$(date '+%F %T')" "$name" "$*"; }
fail() {
  say "$1" >&2
  exit 2
}

# What ended the run: USR1 (the time limit is near) or TERM (scancel, preemption); empty while
# nothing has. The orchestrator's first SIGTERM lets evaluations that run finish, its second kills them.
ending=''
received=''
running=''
passed=''
end() {
  received=yes
  if [[ $1 == TERM && $ending == USR1 && $SECONDS -ge $time_limit ]]; then
    say 'The time limit is here.'
  else
    ending=$1
    say "Got SIG$1 after $SECONDS s: no new evaluation starts."
  fi
  pass_on_if_running
}
pass_on_if_running() {
  if [[ -n $running ]]; then
    passed=yes
    pass_on
  fi
}
trap 'end USR1' USR1
trap 'end TERM' TERM

# After `running` is set: a signal may have come just before.
catch_up() { if [[ -n $ending && -z $passed ]]; then pass_on_if_running; fi; }

# The exit code of a child, however often a signal interrupts the waiting for it.
wait_for() {
  local status=0
  while true; do
    received=''
    wait "$1"
    status=$?
    if [[ -z $received ]]; then return "$status"; fi
  done
}

[[ -f $run_dir/config.toml ]] || fail "$run_dir/config.toml is not there: export again where it now lies"
[[ -x $python ]] || fail "$python is no interpreter here: name one with slurm.python, and export again"
cd -- "$work_dir" || fail "cannot enter $work_dir, where relative paths begin"
say "Job ${SLURM_JOB_ID:-?} on ${SLURM_JOB_NODELIST:-$(hostname)}, start ${SLURM_RESTART_COUNT:-0}."
