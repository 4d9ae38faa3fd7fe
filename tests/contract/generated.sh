#!/usr/bin/env bash
# Usage: generated.sh CONTRACTGEN SOURCE_DIR GENERATED_DIR
# Generating every contract again gives what the build has, file for file: nothing stale, nothing that depends on the run.
set -euo pipefail
contractgen=$1 source=$2 generated=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$contractgen" "$scratch" "$source" "$source"/contracts/*.yaml
diff --recursive --exclude=shaders --exclude=kernels --exclude=links.txt "$scratch" "$generated"  # these come from kernels and CMake
files=$(find "$scratch" -type f | wc -l)
echo "$files files"
[ "$files" -gt 0 ]
