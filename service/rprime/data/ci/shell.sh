#!/bin/sh
# Written by `rprime init`. It ends with 0 if the model is no worse than the baseline, with 1 if it
# is worse, with 2 if a file is wrong, with 5 if the model could not be judged.
set -eu

# Yours goes here: what writes the predictions, as `python predict.py`.

status=0
rprime evaluate @ARGUMENTS@ \
  --gates gates.yaml --junit rprime.xml || status=$?
@PROMOTE@
exit "$status"
