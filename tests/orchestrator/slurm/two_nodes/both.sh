#!/usr/bin/env bash
# both.sh SHARED JOB: JOB on the first of two nodes, which are namespaces of this machine with an
# address, processes, a host name and a /tmp/ray of their own. SHARED is a directory of both.
set -u
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
shared="$1"
printf '127.0.0.1 localhost\n10.77.0.1 node1\n10.77.0.2 node2\n' >"$shared/hosts"
node() {
  unshare --net --pid --mount --uts --ipc --fork --kill-child --mount-proc bash "$here/node.sh" "$@" &
}
node 2 "$shared"
second=$!
node 1 "$shared" "$2"
first=$!
until [[ -e $shared/up1 && -e $shared/up2 ]]; do
  kill -0 "$first" && kill -0 "$second" || exit 90
  sleep 0.1
done
ip link add eth1 netns "$(pgrep -P "$first")" type veth peer name eth2 netns "$(pgrep -P "$second")" || exit 91
wait "$first"
code=$?
touch "$shared/over"
wait "$second"
exit "$code"
