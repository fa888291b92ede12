#!/bin/sh
# Regenerates generated/gpfnapp_generated.py from gpfnapp.fbs, or writes it to the folder $1.
set -eu
cd "$(dirname "$0")"
out=${1:-generated}
mkdir -p "$out"
flatc --python --gen-object-api --gen-onefile -o "$out" gpfnapp.fbs
sed -i '1s/^/# mypy: ignore-errors\n# ruff: noqa\n/' "$out/gpfnapp_generated.py"
