
restarts="${SLURM_RESTART_COUNT:-0}"
back_into_the_queue() {
  trap '' TERM USR1 # SLURM ends this script when it takes the job back
  say "$1"
  scontrol requeue "$SLURM_JOB_ID" || say 'SLURM did not take it back: submit it again to go on.' >&2
}

case $code in
0 | 4)
  say "Done (exit code $code)."
  exit 0 # 4 is a result too: a No-Go, or a budget that is spent
  ;;
3)
  say 'Paused by a rule: the report above says which, and how to go on. Not requeued.'
  exit 3
  ;;
5) # a job that SLURM starts again may meet its own predecessor, which lives on where a node is cut off
  if [[ $ending != TERM ]] && ((0 < restarts && restarts < (max_requeues > 10 ? max_requeues : 10))); then
    back_into_the_queue 'An earlier start of this job may still have the run: back into the queue, to wait for it.'
  else
    say 'Another orchestrator has the run: see above. Not requeued; submit it again when that one has ended.'
  fi
  exit 5
  ;;
130 | 143) ;;
*)
  say "Failed with exit code $code: see above. Not requeued; submit it again to go on."
  exit "$code"
  ;;
esac

if [[ $ending != USR1 ]]; then
  say "Ended by ${ending:-a signal}, not by its time limit. If squeue still shows job ${SLURM_JOB_ID:-?}, SLURM" \
    'has requeued it and it goes on by itself; otherwise submit it again to go on.'
  exit "$code"
fi
if ((restarts >= max_requeues)); then
  say "Not finished after $restarts requeues, of which slurm.max_requeues allows" \
    "$max_requeues. Submit it again to go on."
  exit "$code"
fi
back_into_the_queue 'Not finished: back into the queue, where the next start resumes it.'
exit "$code"
