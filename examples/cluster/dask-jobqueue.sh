#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
# dask-jobqueue.sh CAMPAIGN DIR PARTITION: on a login node. Dask asks Slurm for 40 workers and hands the tasks out; a worker that ends
# is replaced. Needs: pip install dask-jobqueue, and the package deltaproof on all nodes.
set -eu
exec python3 -m deltaproof.sweep "$1" -o "$2" --cluster "slurm:$3" --workers 40
