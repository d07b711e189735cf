#!/bin/sh
# make.sh PROGRAM DIR: the problems and results that suite.toml judges, written into DIR beside a copy of it.
# Environment: NEAR_REPEATED and CORRELATED, the lengths (16384 and 8192).
set -eu
program=$1
box=$2
mkdir -p "$box"
for law in near-repeated correlated; do
  if [ $law = near-repeated ]; then tokens=${NEAR_REPEATED:-16384}; else tokens=${CORRELATED:-8192}; fi
  for op in kda gated_delta_rule; do
    "$program" gen --regime $law --op $op --dtype bf16 --B 1 --T "$tokens" --K 128 --V 128 --H 1 --HV 1 --initial-state none \
      --seed 1 -o "$box/$law-$op.problem.safetensors" > /dev/null
  done
  emulate() { # emulate PLAN OP CHUNK
    "$program" emulate "$box/$law-$2.problem.safetensors" --plan "$1" --chunk "$3" -o "$box/$law-$1.result.safetensors" > /dev/null
  }
  emulate flashkda-fp16-neumann kda 16
  emulate flashkda-repaired kda 16
  emulate fla-chunk-kda kda 64
  emulate neumann-64 gated_delta_rule 64
  emulate doubling-128 gated_delta_rule 128
  emulate bf16-between-steps gated_delta_rule 64
  emulate fla-chunk-gdn gated_delta_rule 64
done
cp "$(dirname "$0")/suite.toml" "$box/suite.toml"
