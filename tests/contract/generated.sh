#!/usr/bin/env bash
# Usage: generated.sh CONTRACTGEN SOURCE_DIR GENERATED_DIR
# Regenerating every contract reproduces the build's files exactly: none is stale, and none depends on the run.
set -euo pipefail
contractgen=$1 source=$2 generated=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$contractgen" "$scratch" "$source" "$source"/contracts/*.yaml
diff --recursive --exclude=shaders --exclude=kernels --exclude=links.txt "$scratch" "$generated"  # kernels and CMake generate these
files=$(find "$scratch" -type f | wc -l)
echo "$files files"
[ "$files" -gt 0 ]
