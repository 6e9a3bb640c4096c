#!/usr/bin/env bash
# The job of a test: started, warned of its time limit, and started again when it was requeued.
# $RUN is its directory, $WHEN what the orchestrator says when the warning comes.
set -u
bash "$RUN/run.slurm" >>"$RUN/slurm-1.out" 2>&1 &
job=$!
until grep -qF "$WHEN" "$RUN/run.out" 2>/dev/null; do
  kill -0 "$job" 2>/dev/null || break
  sleep 0.1
done
kill -USR1 "$job"
wait "$job"
while kill -0 "$job" 2>/dev/null; do wait "$job"; done
[[ -s $CLUSTER/asked.scontrol ]] || exit 92
export SLURM_RESTART_COUNT=1
bash "$RUN/run.slurm" >>"$RUN/slurm-1.out" 2>&1
