#!/bin/sh
# Makes eatss-measure.pyz, eatss in one file for machines that measure: one-file.sh WHEEL OUTPUT.
# Needs shiv (pip install shiv). The wheel is that of eatss.
set -eu
here=$(dirname "$0")
exec shiv --console-script eatss --extend-pythonpath --compressed --python "/usr/bin/env python3" \
    --output-file "$2" --no-deps --requirement "$here/one-file.txt" "$1"
