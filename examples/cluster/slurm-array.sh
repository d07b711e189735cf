#!/bin/sh
#SBATCH --job-name=deltaproof
#SBATCH --array=1-40
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --requeue
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
# sbatch slurm-array.sh CAMPAIGN DIR: each job of the array runs its part, which it knows from SLURM_ARRAY_TASK_ID. DIR is a folder
# that all nodes see. A job that was killed goes on where it was when it is queued again. After the last:
#   deltaproof merge DIR -o report.json
set -eu
exec deltaproof sweep "$1" -o "$2" --threads "${SLURM_CPUS_PER_TASK:-1}"
