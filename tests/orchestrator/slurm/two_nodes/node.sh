#!/usr/bin/env bash
# node.sh NUMBER SHARED [JOB]: the first node does the job, the other what srun asks for.
set -u
number="$1" shared="$2"
hostname "node$number"
mount --bind "$shared/hosts" /etc/hosts
mkdir -p /tmp/ray
mount -t tmpfs none /tmp/ray
ip link set lo up
touch "$shared/up$number"
until ip link show "eth$number" >/dev/null 2>&1; do sleep 0.1; done
ip addr add "10.77.0.$number/24" dev "eth$number"
ip link set "eth$number" up
if [[ $number == 1 ]]; then
  bash "$3"
  exit
fi
# slurmd: starts the step's task, passes SIGTERM on, leaves no process of the step behind.
until [[ -e $shared/over ]]; do
  if [[ -e $shared/task ]]; then
    mv "$shared/task" "$shared/task.running"
    bash "$shared/task.running" >>"$shared/node2.out" 2>&1 &
    task=$!
    while kill -0 "$task" 2>/dev/null; do
      if [[ -e $shared/term ]]; then
        rm "$shared/term"
        kill -TERM "$task"
      fi
      sleep 0.1
    done
    kill -KILL -1
    touch "$shared/gone"
  fi
  sleep 0.1
done
