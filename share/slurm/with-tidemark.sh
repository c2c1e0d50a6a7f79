#!/bin/bash
# Runs a command of a batch script, and watches its job meanwhile: `with-tidemark.sh srun python train.py`.
#
# Starts `tidemark distributed` as master on the first node, where batch scripts run, and as worker on each other node. When the
# command has ended, the master writes its report. The exit code is that of the command. Nothing here needs root.
#
#   TIDEMARK           the program                                            [tidemark]
#   TIDEMARK_PORT      where the master listens; torchrun uses 29500 too       [29400]
#   TIDEMARK_REPORT    the report                                              [tidemark-JOB.json]
set -u

if [ $# -eq 0 ] || [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "with-tidemark.sh: call it in a Slurm job, with a command: with-tidemark.sh srun python train.py" >&2
  exit 2
fi
tidemark=${TIDEMARK:-tidemark}
port=${TIDEMARK_PORT:-29400}
report=${TIDEMARK_REPORT:-tidemark-$SLURM_JOB_ID.json}

# The key of the job: srun passes the environment on to the workers.
if [ -z "${TIDEMARK_JOB_TOKEN:-}" ]; then
  TIDEMARK_JOB_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  export TIDEMARK_JOB_TOKEN
fi

"$tidemark" distributed --role master --port "$port" --output "$report" >"${report%.json}.log" 2>&1 &
master=$!
workers=
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then
  first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  srun --overlap --relative=1 --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks-per-node=1 --cpus-per-task=1 \
    "$tidemark" distributed --role worker --master-host "$first" --port "$port" >>"${report%.json}.log" 2>&1 &
  workers=$!
fi

"$@"
code=$?

kill -TERM "$master" 2>/dev/null
wait "$master"
if [ -n "$workers" ]; then
  kill -TERM "$workers" 2>/dev/null # srun passes it on
  wait "$workers"
fi
exit "$code"
