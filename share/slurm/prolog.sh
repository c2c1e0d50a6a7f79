#!/bin/bash
# Slurm's Prolog: watches the memory of this node for each job, as the job's user. epilog.sh ends it, and it writes its report.
#
#   slurm.conf:  Prolog=/etc/slurm/tidemark/prolog.sh
#                Epilog=/etc/slurm/tidemark/epilog.sh
#
# Settings, in /etc/slurm/tidemark/settings if that file exists:
#   TIDEMARK           the program; Slurm sets no PATH                         [/usr/bin/tidemark]
#   TIDEMARK_STATE     folder of the process numbers, of root                  [/run/tidemark-slurm]
#   TIDEMARK_REPORTS   folder of the reports; each job's is its user's alone   [/var/log/tidemark]
#
# A prolog that fails would set the node to DOWN: this one always ends with 0.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
settings=${TIDEMARK_SETTINGS:-/etc/slurm/tidemark/settings}
# shellcheck source=/dev/null
[ -r "$settings" ] && . "$settings"
tidemark=${TIDEMARK:-/usr/bin/tidemark}
state=${TIDEMARK_STATE:-/run/tidemark-slurm}
reports=${TIDEMARK_REPORTS:-/var/log/tidemark}

case "${SLURM_JOB_ID:-}" in '' | *[!0-9]*) exit 0 ;; esac
[ -n "${SLURM_JOB_USER:-}" ] && [ -x "$tidemark" ] || exit 0
node=$(hostname -s)
umask 077
mkdir -p "$state" || exit 0
(umask 022 && mkdir -p "$reports") || exit 0
mkdir -p "$reports/$SLURM_JOB_ID" && chown "$SLURM_JOB_USER" "$reports/$SLURM_JOB_ID" || exit 0

# GPUs of the job, where Slurm tells them here; otherwise all of the node. The numbers are those of nvidia-smi if gres.conf has
# the GPUs in the order of their PCI addresses, as AutoDetect=nvml makes it.
devices=()
if [ -n "${SLURM_JOB_GPUS:-}" ]; then
  IFS=, read -ra gpus <<<"$SLURM_JOB_GPUS"
  devices=(--devices "${gpus[@]}" cpu)
fi
# In a session of its own, by which the epilog finds it, and without this script's output, which slurmd reads to its end.
setsid runuser -u "$SLURM_JOB_USER" -- "$tidemark" oom --monitor "${devices[@]}" \
  --output "$reports/$SLURM_JOB_ID/$node.json" </dev/null >/dev/null 2>&1 &
echo $! >"$state/$SLURM_JOB_ID"
exit 0
