#!/bin/bash
# Slurm's Epilog: ends what prolog.sh has started for the job, which then writes its report. See prolog.sh for the settings.
#
# An epilog that fails would set the node to DOWN: this one always ends with 0.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
settings=${TIDEMARK_SETTINGS:-/etc/slurm/tidemark/settings}
# shellcheck source=/dev/null
[ -r "$settings" ] && . "$settings"
state=${TIDEMARK_STATE:-/run/tidemark-slurm}

case "${SLURM_JOB_ID:-}" in '' | *[!0-9]*) exit 0 ;; esac
[ -r "$state/$SLURM_JOB_ID" ] || exit 0
read -r session <"$state/$SLURM_JOB_ID"
rm -f "$state/$SLURM_JOB_ID"
case "$session" in '' | *[!0-9]*) exit 0 ;; esac
# The session that setsid has made: runuser and the watcher.
pkill -TERM --session "$session" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  pgrep --session "$session" >/dev/null || exit 0
  sleep 0.5
done
pkill -KILL --session "$session" 2>/dev/null
exit 0
