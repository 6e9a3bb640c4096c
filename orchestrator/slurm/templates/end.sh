
case $code in
0 | 4)
  say "Done (exit code $code)."
  exit 0 # 4 is a result too: a No-Go, or a budget that is spent
  ;;
3)
  say 'Paused by a rule: the report above says which, and how to go on. Not requeued.'
  exit 3
  ;;
130 | 143) ;;
*)
  say "Failed with exit code $code: see above. Not requeued; submit it again to go on."
  exit "$code"
  ;;
esac

if [[ $ending != USR1 ]]; then
  say "Ended by ${ending:-a signal}, not by its time limit. Not requeued; submit it again to go on."
  exit "$code"
fi
if ((${SLURM_RESTART_COUNT:-0} >= max_requeues)); then
  say "Not finished after ${SLURM_RESTART_COUNT:-0} requeues, of which slurm.max_requeues allows" \
    "$max_requeues. Submit it again to go on."
  exit "$code"
fi
trap '' TERM USR1 # SLURM ends this script when it takes the job back
say 'Not finished: back into the queue, where the next start resumes it.'
scontrol requeue "$SLURM_JOB_ID" || say 'SLURM did not take it back: submit it again to go on.' >&2
exit "$code"
