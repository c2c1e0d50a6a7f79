#!/bin/sh
# For `srun --epilog=slurm_epilog.sh`: writes the verdict on a restart beside the recordings of the job step, and into the
# job's output. TIDEMARK_RECORDINGS is their folder. Always succeeds: it is no reason for a job to fail.
folder=${TIDEMARK_RECORDINGS:-recordings/${SLURM_JOB_ID:-}}
[ -d "$folder" ] || exit 0
tidemark restart "$folder" --format json -o "$folder/restart.json" && tidemark restart "$folder"
exit 0
